package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/conditiontext"
)

const (
	// sameFor is how long an Event with the same text is not written again.
	sameFor = 10 * time.Minute
	// queued is the number of Events that wait for the API server. Further ones are only logged.
	queued = 64
	// eventTimeout limits how long an Event is written.
	eventTimeout = 5 * time.Second
	// Component is the source of Events.
	Component = "gardener-node-agent"
)

// Events writes Events about a Node. Its methods may be called concurrently.
type Events struct {
	client *Client
	node   *Watched[corev1.Node]
	clock  clock.PassiveClock
	log    logr.Logger
	queue  chan *corev1.Event
}

// NewEvents returns a writer of Events about a Node. It writes when Run is called.
func NewEvents(client *Client, node *Watched[corev1.Node], c clock.PassiveClock, log logr.Logger) *Events {
	return &Events{client: client, node: node, clock: c, log: log, queue: make(chan *corev1.Event, queued)}
}

// Write writes an Event later. kind is Normal or Warning. Without a Node, the Event is only logged.
func (e *Events) Write(kind, reason, message string) {
	e.log.Info("Event", "type", kind, "reason", reason, "message", message)
	node, _ := e.node.Get()
	if node == nil {
		return
	}
	now := metav1.NewTime(e.clock.Now())
	event := &corev1.Event{
		// Names of Events must differ; the time in nanoseconds does.
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s.%x", node.Name, now.UnixNano())},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		Reason:         reason, Message: conditiontext.ForEvent(message), Type: kind, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: Component, Host: node.Name}, ReportingController: Component, ReportingInstance: node.Name,
	}
	select {
	case e.queue <- event:
	default:
	}
}

// Run writes Events until the context ends, and then those that wait. An Event with the text of one that was written in the last ten minutes is left out.
func (e *Events) Run(ctx context.Context) {
	written := map[string]time.Time{}
	rest := context.WithoutCancel(ctx) // one that is being written when the context ends is not lost
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case event := <-e.queue:
			e.create(rest, event, written)
		}
	}
	for {
		select {
		case event := <-e.queue:
			e.create(rest, event, written)
		default:
			return
		}
	}
}

// create creates an Event, unless one with the same text was written a short time ago.
func (e *Events) create(ctx context.Context, event *corev1.Event, written map[string]time.Time) {
	for text, at := range written {
		if e.clock.Since(at) >= sameFor {
			delete(written, text)
		}
	}
	text := event.Reason + "\n" + event.Message
	if _, found := written[text]; found {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	if err := e.client.CreateEvent(ctx, event); err != nil {
		e.log.Error(err, "An Event was not written")
		return
	}
	written[text] = event.LastTimestamp.Time
}
