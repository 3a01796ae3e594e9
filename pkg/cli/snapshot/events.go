package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/trellis-k8s/trellis/pkg/live"
	"github.com/trellis-k8s/trellis/pkg/warnings"
)

// Event is an Event about an object, for output.
type Event struct {
	Last     time.Time `json:"last"`
	Type     string    `json:"type"`
	Reason   string    `json:"reason"`
	Object   string    `json:"object"`
	Message  string    `json:"message"`
	Count    int32     `json:"count,omitempty"`
	Reporter string    `json:"reporter,omitempty"`
}

// ListEvents reads the Events of a namespace that match the field selector, page by page.
func ListEvents(ctx context.Context, getter corev1client.EventsGetter, namespace string, selected fields.Set) ([]corev1.Event, error) {
	var all []corev1.Event
	options := metav1.ListOptions{Limit: pageSize, FieldSelector: fields.SelectorFromSet(selected).String()}
	for {
		list, err := getter.Events(namespace).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list the Events of namespace %s: %w", namespace, err)
		}
		all = append(all, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return all, nil
		}
	}
}

// EventNamespaces returns the namespaces of Events about objects. Events about cluster-scoped objects are in
// namespace default.
func EventNamespaces(objects []*Object) []string {
	var namespaces []string
	for _, object := range objects {
		object.Walk(func(o *Object) {
			namespace := cmp.Or(o.Namespace, metav1.NamespaceDefault)
			if !slices.Contains(namespaces, namespace) {
				namespaces = append(namespaces, namespace)
			}
		})
	}
	slices.Sort(namespaces)
	return namespaces
}

// EventsAbout returns the Events about objects and their children, the latest last. It includes Events about deleted
// Pods and other
// deleted children of a workload, whose names begin with the name of the workload.
func EventsAbout(events []corev1.Event, objects []*Object) []corev1.Event {
	uids := map[types.UID]bool{}
	type name struct{ kind, namespace, name string }
	names := map[name]bool{}
	var prefixes []name
	for _, root := range objects {
		root.Walk(func(o *Object) {
			if o.Presence == live.Present {
				uids[o.Meta.UID] = true
			}
			names[name{o.Kind, o.Namespace, o.Name}] = true
		})
		if len(ownedBy(root.GroupKind())) > 0 {
			prefixes = append(prefixes, name{"", root.Namespace, root.Name + "-"})
		}
	}
	about := slices.DeleteFunc(slices.Clone(events), func(event corev1.Event) bool {
		of := event.InvolvedObject
		if uids[of.UID] || names[name{of.Kind, of.Namespace, of.Name}] {
			return false
		}
		return !slices.ContainsFunc(prefixes, func(prefix name) bool {
			return of.Namespace == prefix.namespace && strings.HasPrefix(of.Name, prefix.name)
		})
	})
	slices.SortStableFunc(about, func(a, b corev1.Event) int {
		return cmp.Or(warnings.LastSeen(a).Compare(warnings.LastSeen(b)), cmp.Compare(a.Name, b.Name))
	})
	return about
}

// Describe converts an Event for output.
func Describe(event corev1.Event) Event {
	count := event.Count
	if event.Series != nil {
		count = max(count, event.Series.Count)
	}
	return Event{
		Last: warnings.LastSeen(event), Type: event.Type, Reason: event.Reason, Message: strings.TrimSpace(event.Message), Count: count,
		Object:   event.InvolvedObject.Kind + " " + event.InvolvedObject.Name,
		Reporter: cmp.Or(event.ReportingController, event.Source.Component),
	}
}
