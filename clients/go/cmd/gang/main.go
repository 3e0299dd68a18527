// Command gang schedules a gang of three pods on two nodes and prints where they run.
//
// It is a whole client in one file: it applies objects in one call, asks for a decision, waits for it, and reads the
// assignments. The exit status is 0 if the gang was scheduled, 1 if not, 2 for wrong arguments.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.dev/client/muster/v1"
)

const (
	group   = "workers"
	members = 3
)

var errNotScheduled = errors.New("not scheduled")

func main() {
	server := flag.String("server", "127.0.0.1:50051", "address of the server: host:port or unix:///path")
	cluster := flag.String("cluster", "gang-example", "cluster to use; it is created if it does not exist")
	wait := flag.Duration("wait", 30*time.Second, "how long to wait until the gang is scheduled, at most 10m")
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(os.Stdout, *server, *cluster, *wait); err != nil {
		fmt.Fprintln(os.Stderr, "gang:", err)
		os.Exit(1)
	}
}

// run applies the gang, waits for its decision and prints the assignments.
func run(out io.Writer, server, cluster string, wait time.Duration) error {
	connection, err := grpc.NewClient(server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	// The server's own deadline of Schedule is the wait and 30 s.
	ctx, cancel := context.WithTimeout(context.Background(), wait+30*time.Second)
	defer cancel()

	request := &musterv1.ApplyRequest{Cluster: cluster, Objects: objects()}
	if _, err := musterv1.NewClusterServiceClient(connection).Apply(ctx, request); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	decision, err := schedule(ctx, musterv1.NewSchedulerServiceClient(connection), cluster, wait)
	if err != nil {
		return err
	}
	printAssignments(out, decision.GetAssignments())
	return nil
}

// schedule asks for the gang's decision; errNotScheduled wraps the reason if its pods do not run.
func schedule(
	ctx context.Context, scheduler musterv1.SchedulerServiceClient, cluster string, wait time.Duration,
) (*musterv1.Decision, error) {
	response, err := scheduler.Schedule(ctx, &musterv1.ScheduleRequest{
		Cluster: cluster,
		Unit:    &musterv1.ObjectRef{Kind: "PodGroup", Name: group},
		Wait:    durationpb.New(wait),
	})
	if err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	decision := response.GetDecision()
	if decision.GetCode() != musterv1.DecisionCode_DECISION_CODE_SCHEDULED {
		return nil, fmt.Errorf("%w: %s: %s", errNotScheduled, decision.GetCode(), decision.GetMessage())
	}
	return decision, nil
}

// printAssignments writes a line "pod -> node" for each assignment.
func printAssignments(out io.Writer, assignments *musterv1.Assignments) {
	for i, pod := range assignments.GetPods() {
		fmt.Fprintf(out, "%s -> %s\n", pod, assignments.GetNodes()[assignments.GetNodeIndex()[i]])
	}
}

// objects are two nodes, a gang, and its pods as one batch.
func objects() []*musterv1.Object {
	names := make([]string, members)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", group, i)
	}
	return []*musterv1.Object{
		node("node-0"),
		node("node-1"),
		{Kind: &musterv1.Object_PodGroup{PodGroup: gang()}},
		{Kind: &musterv1.Object_PodBatch{PodBatch: &musterv1.PodBatch{Template: worker(), Names: names}}},
	}
}

// node is a machine with 4 cores.
func node(name string) *musterv1.Object {
	return &musterv1.Object{Kind: &musterv1.Object_Node{Node: &musterv1.Node{
		Metadata: &musterv1.ObjectMeta{Name: name},
		Status:   &musterv1.NodeStatus{Capacity: map[string]string{"cpu": "4", "memory": "16Gi"}},
	}}}
}

// gang is a group whose pods run all at once or not at all.
func gang() *musterv1.PodGroup {
	return &musterv1.PodGroup{
		Metadata: &musterv1.ObjectMeta{Name: group},
		Spec: &musterv1.PodGroupSpec{SchedulingPolicy: &musterv1.PodGroupSchedulingPolicy{
			Gang: &musterv1.GangSchedulingPolicy{MinCount: proto.Int32(members)},
		}},
	}
}

// worker is a pod of the gang, without a name. Two fit on a node, so that three need both nodes.
func worker() *musterv1.Pod {
	return &musterv1.Pod{Spec: &musterv1.PodSpec{
		SchedulingGroup: &musterv1.PodSchedulingGroup{PodGroupName: group},
		Containers: []*musterv1.Container{{
			Name: "main",
			Resources: &musterv1.ResourceRequirements{
				Requests: map[string]string{"cpu": "2", "memory": "4Gi"},
			},
		}},
	}}
}
