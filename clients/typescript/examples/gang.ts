// Schedules a gang of three pods on two nodes and prints where they run.
//
//   node dist/examples/gang.js [--server HOST:PORT] [--cluster NAME]
//
// The exit status is 0 if the gang was scheduled, 1 if not.
import { parseArgs } from "node:util";

import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

import { ClusterService } from "../muster/v1/cluster_service_pb.js";
import { type Decision, DecisionCode } from "../muster/v1/decision_pb.js";
import type { ObjectSchema } from "../muster/v1/object_pb.js";
import { SchedulerService } from "../muster/v1/scheduler_service_pb.js";

const GROUP = "workers";
const MEMBERS = 3;
const WAIT_SECONDS = 30n;

type ObjectInit = MessageInitShape<typeof ObjectSchema>;

function node(name: string): ObjectInit {
  const status = { capacity: { cpu: "4", memory: "16Gi" } };
  return { kind: { case: "node", value: { metadata: { name }, status } } };
}

/** A group whose pods run all at once or not at all. */
function gang(): ObjectInit {
  const spec = { schedulingPolicy: { gang: { minCount: MEMBERS } } };
  return { kind: { case: "podGroup", value: { metadata: { name: GROUP }, spec } } };
}

/** The gang's pods. Two fit on a node, so that three need both nodes. */
function workers(): ObjectInit {
  const requests = { cpu: "2", memory: "4Gi" };
  const spec = {
    schedulingGroup: { podGroupName: GROUP },
    containers: [{ name: "main", resources: { requests } }],
  };
  const names = Array.from({ length: MEMBERS }, (_, index) => `${GROUP}-${index}`);
  return { kind: { case: "podBatch", value: { template: { spec }, names } } };
}

async function decide(server: string, cluster: string): Promise<Decision | undefined> {
  const transport = createGrpcTransport({ baseUrl: `http://${server}` });
  const objects = [node("node-0"), node("node-1"), gang(), workers()];
  await createClient(ClusterService, transport).apply({ cluster, objects });
  const unit = { kind: "PodGroup", name: GROUP };
  const wait = { seconds: WAIT_SECONDS };
  const answer = await createClient(SchedulerService, transport).schedule({ cluster, unit, wait });
  return answer.decision;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      server: { type: "string", default: "127.0.0.1:50051" },
      cluster: { type: "string", default: "gang-example" },
    },
  });
  const decision = await decide(values.server, values.cluster);
  if (decision?.code !== DecisionCode.SCHEDULED) {
    console.error(`not scheduled: ${decision?.message ?? "nothing was decided yet"}`);
    return 1;
  }
  const { pods = [], nodes = [], nodeIndex = [] } = decision.assignments ?? {};
  pods.forEach((pod, index) => console.log(`${pod} -> ${nodes[nodeIndex[index] ?? -1]}`));
  return 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
