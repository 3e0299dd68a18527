// Command gangs loads a server: clients apply one gang of eight after the other, and wait for each until it is bound.
//
// Every client has a connection of its own and starts its next gang once the last one runs, until the time is over. The
// report is one JSON object: "calls" (gangs that were bound), "calls_a_second", "p50_ms", "p95_ms", "p99_ms" (from Apply to
// the answer that the gang is scheduled and durable), and "errors" by gRPC status. The cluster must have room for all.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	musterv1 "muster.dev/client/muster/v1"
)

const (
	members = 8
	wait    = time.Minute
)

type report struct {
	Calls        int            `json:"calls"`
	CallsASecond float64        `json:"calls_a_second"`
	P50          float64        `json:"p50_ms"`
	P95          float64        `json:"p95_ms"`
	P99          float64        `json:"p99_ms"`
	Errors       map[string]int `json:"errors"`
}

// outcomes is what all clients together have seen: milliseconds of each gang that was bound, and errors by status.
type outcomes struct {
	sync.Mutex
	bound  []float64
	errors map[string]int
}

func main() {
	server := flag.String("server", "127.0.0.1:50051", "address of the server: host:port or unix:///path")
	cluster := flag.String("cluster", "default", "cluster to load")
	clients := flag.Int("clients", 64, "clients, each on a connection of its own")
	seconds := flag.Float64("seconds", 5, "how long gangs are begun")
	flag.Parse()
	if flag.NArg() > 0 || *clients < 1 {
		flag.Usage()
		os.Exit(2)
	}
	seen := &outcomes{errors: map[string]int{}}
	begun := time.Now()
	end := begun.Add(time.Duration(*seconds * float64(time.Second)))
	var all sync.WaitGroup
	for number := range *clients {
		all.Add(1)
		go func() {
			defer all.Done()
			seen.client(*server, *cluster, number, end)
		}()
	}
	all.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(seen.report(time.Since(begun))); err != nil {
		fmt.Fprintln(os.Stderr, "gangs:", err)
		os.Exit(1)
	}
}

// client begins gangs until the time is over.
func (seen *outcomes) client(server, cluster string, number int, end time.Time) {
	connection, err := grpc.NewClient(server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		seen.add(0, err)
		return
	}
	defer connection.Close()
	for count := 0; time.Now().Before(end); count++ {
		name := fmt.Sprintf("gang-%d-%d", number, count)
		begun := time.Now()
		err := bind(connection, cluster, name)
		seen.add(time.Since(begun), err)
	}
}

// bind applies a gang, in a call that ends once it is bound.
func bind(connection *grpc.ClientConn, cluster, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*wait)
	defer cancel()
	response, err := musterv1.NewClusterServiceClient(connection).Apply(ctx, &musterv1.ApplyRequest{
		Cluster: cluster,
		Objects: gang(name),
		Wait:    durationpb.New(wait),
	})
	if err != nil {
		return err
	}
	for _, decision := range response.GetDecisions() {
		if decision.GetCode() == musterv1.DecisionCode_DECISION_CODE_SCHEDULED {
			return nil
		}
	}
	return fmt.Errorf("%s is not scheduled: %v", name, response.GetDecisions())
}

func (seen *outcomes) add(took time.Duration, err error) {
	seen.Lock()
	defer seen.Unlock()
	if err != nil {
		seen.errors[status.Code(err).String()]++
		return
	}
	seen.bound = append(seen.bound, float64(took)/float64(time.Millisecond))
}

func (seen *outcomes) report(took time.Duration) report {
	slices.Sort(seen.bound)
	return report{
		Calls:        len(seen.bound),
		CallsASecond: float64(len(seen.bound)) / took.Seconds(),
		P50:          seen.percentile(0.50),
		P95:          seen.percentile(0.95),
		P99:          seen.percentile(0.99),
		Errors:       seen.errors,
	}
}

// percentile is 0 if no gang was bound.
func (seen *outcomes) percentile(share float64) float64 {
	if len(seen.bound) == 0 {
		return 0
	}
	return seen.bound[int(share*float64(len(seen.bound)-1))]
}

// gang is a group that needs all of its pods, and the pods, of one cpu each, as full objects.
func gang(name string) []*musterv1.Object {
	group := &musterv1.PodGroup{
		Metadata: &musterv1.ObjectMeta{Name: name},
		Spec: &musterv1.PodGroupSpec{SchedulingPolicy: &musterv1.PodGroupSchedulingPolicy{
			Gang: &musterv1.GangSchedulingPolicy{MinCount: proto.Int32(members)},
		}},
	}
	objects := []*musterv1.Object{{Kind: &musterv1.Object_PodGroup{PodGroup: group}}}
	for number := range members {
		pod := worker(name+"-"+strconv.Itoa(number), name)
		objects = append(objects, &musterv1.Object{Kind: &musterv1.Object_Pod{Pod: pod}})
	}
	return objects
}

func worker(name, group string) *musterv1.Pod {
	return &musterv1.Pod{
		Metadata: &musterv1.ObjectMeta{Name: name},
		Spec: &musterv1.PodSpec{
			SchedulingGroup: &musterv1.PodSchedulingGroup{PodGroupName: group},
			Containers: []*musterv1.Container{{
				Name: "main",
				Resources: &musterv1.ResourceRequirements{
					Requests: map[string]string{"cpu": "1", "memory": "1Gi"},
				},
			}},
		},
	}
}
