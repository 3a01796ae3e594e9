package garden

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/rotation"
)

const (
	// AnnotationRotateWithoutSeeds names Seeds of a Garden, separated by commas, for which a rotation does not wait: their gardenlets will not run
	// any more. They cannot reach the garden after the rotation is completed.
	AnnotationRotateWithoutSeeds = "operator.gardener.cloud/rotate-without-seeds"

	// taskOrder is the prefix of the names of tasks that annotate all Seeds, and taskAwait that of tasks that are done once no Seed has the
	// annotation any more. An operation follows.
	taskOrder, taskAwait = "order-", "await-"
	// seedsAgain is how often the Seeds are checked.
	seedsAgain = 10 * time.Second
)

// order is what all Seeds execute while new credentials are prepared.
type order struct {
	credential rotation.Credential
	operation  string
}

// orders are executed one after the other, because a Seed has one annotation.
var orders = []order{
	{rotation.AccountKey, constants.OperationRenewGardenAccessSecrets},
	{rotation.WorkloadIdentityKey, constants.OperationRenewWorkloadIdentityTokens},
	{rotation.Authorities, constants.OperationRenewKubeconfig},
}

// orders returns the tasks for the Seeds.
func (in Inputs) orders() []flow.Task {
	var tasks []flow.Task
	for _, order := range orders {
		for _, c := range in.rotating() {
			if c.Credential == order.credential && c.IsPreparing() {
				tasks = append(tasks, flow.Task{Name: taskOrder + order.operation, Value: c.Value()}, flow.Task{Name: taskAwait + order.operation, Value: c.Value()})
			}
		}
	}
	return tasks
}

// withoutSeeds returns the Seeds that were given up.
func (in Inputs) withoutSeeds() []string {
	var names []string
	for name := range strings.SplitSeq(in.Garden.Annotations[AnnotationRotateWithoutSeeds], ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names
}

// asked are the Seeds that have been annotated with the operation of a task since the start of the process. They remove the annotation when they are done.
type asked struct {
	task  flow.Task
	seeds map[types.UID]bool
}

// seedsToAsk returns the indices of the Seeds that must be annotated with an operation, and the names of those that execute another one. Seeds that are being
// deleted execute none.
func seedsToAsk(seeds []metav1.PartialObjectMetadata, operation string, asked map[types.UID]bool, without []string) (ask []int, busy []string) {
	for i := range seeds {
		seed := &seeds[i]
		current := seed.Annotations[constants.AnnotationGardenerOperation]
		switch {
		case seed.DeletionTimestamp != nil || asked[seed.UID] || slices.Contains(without, seed.Name):
		case current == "":
			ask = append(ask, i)
		case current != operation:
			busy = append(busy, seed.Name)
		}
	}
	return ask, busy
}

// seedsWaitedFor returns the names of the Seeds that have not executed an operation yet.
func seedsWaitedFor(seeds []metav1.PartialObjectMetadata, operation string, without []string) []string {
	var names []string
	for i := range seeds {
		seed := &seeds[i]
		if seed.DeletionTimestamp == nil && seed.Annotations[constants.AnnotationGardenerOperation] == operation && !slices.Contains(without, seed.Name) {
			names = append(names, seed.Name)
		}
	}
	return names
}

// askSeeds annotates all Seeds with the operation of a task.
func (r *reconciler) askSeeds(ctx context.Context, in Inputs, task flow.Task) (flow.Outcome, error) {
	virtual, seeds, err := r.seeds(ctx, in)
	if err != nil {
		return flow.Outcome{}, err
	}
	if r.asked.task != task {
		r.asked = asked{task: task, seeds: map[types.UID]bool{}}
	}
	operation := strings.TrimPrefix(task.Name, taskOrder)
	ask, busy := seedsToAsk(seeds, operation, r.asked.seeds, in.withoutSeeds())
	for _, i := range ask {
		seed := &seeds[i]
		before := client.MergeFromWithOptions(seed.DeepCopy(), client.MergeFromWithOptimisticLock{})
		metav1.SetMetaDataAnnotation(&seed.ObjectMeta, constants.AnnotationGardenerOperation, operation)
		if err := client.IgnoreNotFound(virtual.Patch(ctx, seed, before, client.FieldOwner(fieldManager))); err != nil {
			return flow.Outcome{}, fmt.Errorf("annotate Seed %s with %s: %w", seed.Name, operation, err)
		}
		r.asked.seeds[seed.UID] = true
	}
	if len(busy) > 0 {
		return flow.Outcome{
			Progress: fmt.Sprintf("these Seeds execute another operation before %s: %s; to go on without one, name it in the annotation %s",
				operation, limited(busy), AnnotationRotateWithoutSeeds), Again: seedsAgain,
		}, nil
	}
	return flow.Outcome{Done: true}, nil
}

// awaitSeeds waits until no Seed has the annotation of a task.
func (r *reconciler) awaitSeeds(ctx context.Context, in Inputs, task flow.Task) (flow.Outcome, error) {
	_, seeds, err := r.seeds(ctx, in)
	if err != nil {
		return flow.Outcome{}, err
	}
	operation := strings.TrimPrefix(task.Name, taskAwait)
	left := seedsWaitedFor(seeds, operation, in.withoutSeeds())
	if len(left) == 0 {
		return flow.Outcome{Done: true}, nil
	}
	return flow.Outcome{
		Progress: fmt.Sprintf("these Seeds have not executed %s yet: %s; to go on without one, name it in the annotation %s",
			operation, limited(left), AnnotationRotateWithoutSeeds), Again: seedsAgain,
	}, nil
}

// seeds returns a client of the virtual garden, and all Seeds.
func (r *reconciler) seeds(ctx context.Context, in Inputs) (client.Client, []metav1.PartialObjectMetadata, error) {
	virtual, err := r.connect(in)
	if err != nil {
		return nil, nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("SeedList"))
	if err := virtual.List(ctx, list); err != nil {
		return nil, nil, fmt.Errorf("list the Seeds in the virtual garden: %w", err)
	}
	for i := range list.Items { // items of a list have no kind
		list.Items[i].SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("Seed"))
	}
	return virtual, list.Items, nil
}
