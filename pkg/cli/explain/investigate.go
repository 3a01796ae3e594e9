package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/cli/console"
	"github.com/trellis-k8s/trellis/pkg/cli/relations"
	"github.com/trellis-k8s/trellis/pkg/cli/snapshot"
	"github.com/trellis-k8s/trellis/pkg/cli/state"
	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/warnings"
)

const (
	// processingTimeout is the time within which a running resource-manager processes a change.
	processingTimeout = 30 * time.Second
)

// investigate finds the problems of ManagedResources with these objects. below is set if the owned objects of all of
// them were
// read. states are the states of the ManagedResources that were read, by name.
func investigate(ctx context.Context, c *console.Console, chosen []resourcesv1alpha1.ManagedResource, states map[string]state.Word,
	objects [][]*snapshot.Object, below bool,
) ([]finding, error) {
	i := &investigation{console: c, states: states, now: c.Clock.Now(), events: map[place][]corev1.Event{}, below: below}
	var err error
	if i.source, err = c.Source(); err != nil {
		return nil, err
	}
	findings := make([]finding, 0, len(chosen))
	for n := range chosen {
		if i.target, err = c.TargetOf(&chosen[n]); err != nil && !errors.Is(err, console.ErrNoTarget) {
			return nil, err
		}
		findings = append(findings, i.find(ctx, &chosen[n], objects[n]))
	}
	if i.forbidden {
		c.Warn("Not shown, because you may not read them: Events.")
	}
	return findings, ctx.Err()
}

type investigation struct {
	console *console.Console
	source  *console.Source
	// target has the objects of the ManagedResource that is being explained. It is nil if that cluster is not read.
	target *console.Target
	now    time.Time
	// states are the states of ManagedResources, by name.
	states map[string]state.Word
	// below is set if all owned objects were read.
	below bool
	// events are the Events that were read.
	events    map[place][]corev1.Event
	forbidden bool
}

// place is a namespace of a cluster.
type place struct {
	target    *console.Target
	namespace string
}

func (i *investigation) find(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, objects []*snapshot.Object) finding {
	is := state.Of(mr)
	found := finding{
		Name: mr.Name, Namespace: mr.Namespace, Class: state.ClassOf(mr), State: is.Word, Since: timeOrNil(is.Since),
		Hints: hintsOf(mr, is, i.now), Conditions: conditionsOf(mr), Events: i.own(ctx, mr), Relations: relations.Of(mr), states: i.states,
	}
	takers := map[*snapshot.Object][]snapshot.Taker{}
	var bad []*snapshot.Object
	for n, object := range objects {
		takers[object] = snapshot.Takers(object, mr.Status.Resources[n])
		if !object.Health().IsWell() || len(takers[object]) > 0 {
			bad = append(bad, object)
		}
	}
	bad = snapshot.BySeverity(bad)
	if len(bad) > maxObjects {
		bad, found.More = bad[:maxObjects], len(bad)-maxObjects
	}
	if !i.below && i.target != nil {
		snapshot.NewReader(i.target, []resourcesv1alpha1.ManagedResource{*mr}, func(int) {}).Below(ctx, bad, false)
	}
	for _, object := range bad {
		found.Objects = append(found.Objects, i.examine(ctx, object, takers[object]))
	}
	return found
}

// examine collects the details of an object with problems.
func (i *investigation) examine(ctx context.Context, object *snapshot.Object, takers []snapshot.Taker) trouble {
	result := trouble{
		APIVersion: object.GroupVersion().String(), Kind: object.Kind, Namespace: object.Namespace, Name: object.Name,
		Health: object.Health(), Why: object.Why(), Takers: takers,
	}
	result.Conditions = statusConditions(object.Body)
	result.Since = troubleSince(object, result.Conditions)
	object.Walk(func(child *snapshot.Object) {
		if child != object && !child.Health().IsWell() {
			result.Below = append(result.Below, below{
				Kind: child.Kind, Name: child.Name, Health: child.Health(), Why: cmp.Or(child.Detail, child.Why()), Since: timeOrNil(child.Created()),
			})
		}
	})
	if object.Presence == live.Present || object.Presence == live.Absent {
		result.Events = i.about(ctx, object)
	}
	return result
}

// about returns the latest Events about an object and the objects that it owns, without repeated ones. It returns
// only warnings
// if there are any, or else all Events.
func (i *investigation) about(ctx context.Context, object *snapshot.Object) []snapshot.Event {
	var all []corev1.Event
	for _, namespace := range snapshot.EventNamespaces([]*snapshot.Object{object}) {
		all = append(all, i.eventsIn(ctx, namespace)...)
	}
	all = snapshot.EventsAbout(all, []*snapshot.Object{object})
	warned := slices.DeleteFunc(slices.Clone(all), func(event corev1.Event) bool { return event.Type != corev1.EventTypeWarning })
	if len(warned) > 0 {
		all = warned
	}
	return describe(all)
}

func describe(events []corev1.Event) []snapshot.Event {
	var described []snapshot.Event
	for _, event := range warnings.Latest(events) {
		described = append(described, snapshot.Describe(event))
	}
	return described
}

// eventsIn reads the Events of a namespace once.
func (i *investigation) eventsIn(ctx context.Context, namespace string) []corev1.Event {
	at := place{i.target, namespace}
	if events, known := i.events[at]; known || i.target == nil {
		return events
	}
	events, err := snapshot.ListEvents(ctx, i.target.Events, namespace, nil)
	if err != nil {
		i.handleError(err)
	}
	i.events[at] = events
	return events
}

func (i *investigation) handleError(err error) {
	if apierrors.IsForbidden(err) {
		i.forbidden = true
		return
	}
	i.console.Warn("%v", err)
}

// own returns the latest Events about the ManagedResource itself.
func (i *investigation) own(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) []snapshot.Event {
	list := &corev1.EventList{}
	err := i.source.List(ctx, list, client.InNamespace(mr.Namespace), client.MatchingFieldsSelector{
		Selector: fields.SelectorFromSet(fields.Set{"involvedObject.uid": string(mr.UID)}),
	})
	if err != nil {
		i.handleError(err)
		return nil
	}
	return describe(list.Items)
}

// hintsOf returns hints about problems that the conditions do not show.
func hintsOf(mr *resourcesv1alpha1.ManagedResource, is state.State, now time.Time) []string {
	var hints []string
	class := state.ClassOf(mr)
	if is.Word == state.Pending && (is.Since.IsZero() || now.Sub(is.Since) > processingTimeout) {
		who := fmt.Sprintf("class %q", class)
		if class == resourcesv1alpha1.DefaultClass {
			who = "the default class"
		}
		hints = append(hints, fmt.Sprintf("No resource-manager seems to be responsible for it: check that one with %s is running and watches "+
			"namespace %s.", who, mr.Namespace))
	}
	if is.Word != state.Ready && resourcesv1alpha1.HeldByOther(mr, class) {
		hints = append(hints, fmt.Sprintf("The resource-manager of another class has not finished its cleanup: check that it is running. "+
			"Its finalizer is one of %v.", mr.Finalizers))
	}
	if is.Word == state.Suspended {
		hints = append(hints, "It is suspended: manual changes to its objects are not reverted. Resume it with `kubectl mr resume`.")
	}
	if is.Word == state.Deleting && state.IsSuspended(mr) &&
		mr.Annotations[resourcesv1alpha1.AnnotationOperation] == resourcesv1alpha1.OperationWaitForState {
		hints = append(hints, "It waits for its state, and is not cleaned up until then. Resume it with `kubectl mr resume`.")
	}
	if after := relations.FinalizesAfter(mr); is.Word == state.Deleting && after > 0 {
		due := mr.DeletionTimestamp.Add(after)
		hint := fmt.Sprintf("The finalizers of its objects will be removed in %s, %s after its deletion began.",
			due.Sub(now).Round(time.Second), after)
		if !now.Before(due) {
			hint = fmt.Sprintf("The finalizers of its objects have been removed for %s, starting %s after its deletion began.",
				console.Age(due, now), after)
		}
		hints = append(hints, hint)
	}
	return hints
}

func conditionsOf(mr *resourcesv1alpha1.ManagedResource) []condition {
	var conditions []condition
	sorted := slices.SortedStableFunc(slices.Values(mr.Status.Conditions), func(a, b resourcesv1alpha1.Condition) int {
		rank := func(each resourcesv1alpha1.Condition) int {
			if rank := slices.Index(resourcesv1alpha1.ConditionTypes(), each.Type); rank >= 0 {
				return rank
			}
			return len(resourcesv1alpha1.ConditionTypes()) // set by another controller
		}
		return cmp.Compare(rank(a), rank(b))
	})
	for _, each := range sorted {
		if each.Type == resourcesv1alpha1.Ready {
			continue // it summarizes the others
		}
		conditions = append(conditions, condition{
			string(each.Type), string(each.Status), timeOrNil(each.LastTransitionTime.Time), each.Reason, each.Message,
		})
	}
	return conditions
}

// statusConditions returns the conditions in the status of an object of any kind.
func statusConditions(obj runtime.Object) []condition {
	if obj == nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil
	}
	items, _, _ := unstructured.NestedSlice(content, "status", "conditions") // empty if it is not a list
	var conditions []condition
	for _, item := range items {
		fields, _ := item.(map[string]any)
		text := func(field string) string { value, _ := fields[field].(string); return value }
		since, _ := time.Parse(time.RFC3339, text("lastTransitionTime"))
		conditions = append(conditions, condition{text("type"), text("status"), timeOrNil(since), text("reason"), text("message")})
	}
	return conditions
}

// troubleSince returns the earliest transition to a status other than True, or else the creation time of the object.
func troubleSince(object *snapshot.Object, conditions []condition) *time.Time {
	var since *time.Time
	for _, each := range conditions {
		if each.Status != "True" && each.Since != nil && (since == nil || each.Since.Before(*since)) {
			since = each.Since
		}
	}
	if since == nil {
		return timeOrNil(object.Created())
	}
	return since
}
