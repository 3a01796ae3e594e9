// Package explain finds out why ManagedResources are not ready: which objects have problems, and which conditions and
// Events report them.
package explain

import (
	"context"
	"encoding/json"
	"time"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/relations"
	"github.com/trellis-k8s/trellis/pkg/cli/screen"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
)

// maxObjects limits the number of reported objects of a ManagedResource.
const maxObjects = 10

// Explanation explains the states of ManagedResources at a point in time.
type Explanation struct {
	// Objects are the objects in the inventory of the first ManagedResource, with the owned objects that were read.
	Objects  []*snapshot.Object
	findings []finding
}

// Explain explains the state of a ManagedResource and of the ManagedResources that it waits for. If below is set,
// Explain reads
// the owned objects of all its objects. Otherwise it reads only those of objects with problems, which is sufficient
// for Print.
func Explain(ctx context.Context, c *console.Console, mr *resourcesv1alpha1.ManagedResource, below bool) (*Explanation, error) {
	return All(ctx, c, []resourcesv1alpha1.ManagedResource{*mr}, below)
}

// All explains the states of several ManagedResources and of those that they wait for. See [Explain] for below.
func All(ctx context.Context, c *console.Console, chosen []resourcesv1alpha1.ManagedResource, below bool) (*Explanation, error) {
	if len(chosen) == 0 {
		return &Explanation{findings: []finding{}}, nil
	}
	chosen, states, err := follow(ctx, c, chosen)
	if err != nil {
		return nil, err
	}
	objects, err := snapshot.Inventories(ctx, c, chosen, below, false)
	if err != nil {
		return nil, err
	}
	findings, err := investigate(ctx, c, chosen, states, objects, below)
	if err != nil {
		return nil, err
	}
	return &Explanation{Objects: objects[0], findings: findings}, nil
}

// MarshalJSON returns the output of "-o json".
func (e *Explanation) MarshalJSON() ([]byte, error) { return json.Marshal(e.findings) }

// Print prints the explanation as text.
func (e *Explanation) Print(to screen.Screen, now time.Time) error { return e.print(to, now, false) }

// PrintNext prints the explanation as text, after an empty line.
func (e *Explanation) PrintNext(to screen.Screen, now time.Time) error { return e.print(to, now, true) }

func (e *Explanation) print(to screen.Screen, now time.Time, next bool) error {
	for i := range e.findings {
		if err := e.findings[i].printTo(to, now, next || i > 0); err != nil {
			return err
		}
	}
	return nil
}

// finding is the result for one ManagedResource.
type finding struct {
	Name      string     `json:"name"`
	Namespace string     `json:"namespace"`
	Class     string     `json:"class"`
	State     state.Word `json:"state"`
	Since     *time.Time `json:"since,omitempty"`
	// Hints describe further possible reasons, and advice.
	Hints []string `json:"hints,omitempty"`
	relations.Relations
	// Objects are the objects with problems, the most severe first. More is the number of omitted objects.
	Objects []trouble `json:"objects,omitempty"`
	More    int       `json:"more,omitempty"`
	// Conditions and Events are about the ManagedResource itself.
	Conditions []condition      `json:"conditions,omitempty"`
	Events     []snapshot.Event `json:"events,omitempty"`
	// states are the states of the ManagedResources that were read, by name.
	states map[string]state.Word
}

// trouble is the result for one object.
type trouble struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Namespace  string           `json:"namespace,omitempty"`
	Name       string           `json:"name"`
	Health     snapshot.Health  `json:"health"`
	Why        string           `json:"why,omitempty"`
	Since      *time.Time       `json:"since,omitempty"`
	Conditions []condition      `json:"conditions,omitempty"`
	Below      []below          `json:"below,omitempty"`
	Events     []snapshot.Event `json:"events,omitempty"`
	Takers     []snapshot.Taker `json:"changedBy,omitempty"`
}

// below is an unhealthy object that an object with problems owns.
type below struct {
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`
	Health snapshot.Health `json:"health"`
	Why    string          `json:"why,omitempty"`
	Since  *time.Time      `json:"since,omitempty"`
}

// condition is a condition of an object or of a ManagedResource.
type condition struct {
	Type    string     `json:"type"`
	Status  string     `json:"status"`
	Since   *time.Time `json:"since,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
}

func timeOrNil(when time.Time) *time.Time {
	if when.IsZero() {
		return nil
	}
	return &when
}
