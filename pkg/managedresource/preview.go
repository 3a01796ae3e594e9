package managedresource

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/object"
	"github.com/trellis-k8s/trellis/pkg/target"
)

// Prospect is the result of a preview: what a reconcile would do.
type Prospect struct {
	// Forecasts contains every object, sorted.
	Forecasts []Forecast
	// Problems are the errors of manifests that cannot be read, and errors that prevent all changes. As long as there are
	// any, nothing is pruned.
	Problems []error
	// Blocked is the reason why the changes would wait. It is empty if they would not. Forecasts show the changes without
	// the wait.
	Blocked string
	// Guarded is the error of the prune guard if it would refuse deletions.
	Guarded error
}

// Forecast is what a reconcile would do with one object.
type Forecast struct {
	object.Ref
	// Action is the decision: Create, Apply, Skip, Delete, Forget, Release, HandOver, Wait, Conflict or Fail.
	Action string
	// Reason is a human-readable explanation of the action.
	Reason string
	// Body is the JSON body that would be sent. It is nil if nothing would be sent.
	Body []byte
	// Err is the error that would prevent the change.
	Err error
}

// Preview executes a reconcile without writing the status and Events of the ManagedResource. The engine determines what
// happens to the objects, so that this is a preview only with an engine that does not write. It returns an error if no
// preview is possible.
func (r *Reconciler) Preview(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*Prospect, error) {
	if err := r.warmUpForPreview(ctx); err != nil {
		return nil, err
	}
	p := r.newPass(mr)
	p.preview = true
	p.unrecorded.Confirm(p.self.Owner)
	if p.operation == opCleanUp {
		return p.previewCleanUp(ctx), nil
	}
	in, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	p.claim(in)
	plan := plan{input: in, baseline: p.baselineOf(in)}
	plan.recorded, _ = in.recorded.union(in.manifests)
	gate, err := p.findGate(ctx, plan.input)
	if err != nil {
		return nil, err
	}
	done := p.execute(ctx, plan) // with an open gate, because the preview shows the effect of the changes after the wait
	prospect := prospectOf(plan.input, done)
	if slices.ContainsFunc(done.changes, func(c change) bool { return gate.holds(c, sentDigest(plan.recorded[c.Key()])) }) {
		prospect.Blocked = gate.reason()
	}
	return prospect, ctx.Err()
}

// warmUpForPreview is warmUp for a Source that is not a cache.
func (r *Reconciler) warmUpForPreview(ctx context.Context) error {
	r.startup.mu.Lock()
	defer r.startup.mu.Unlock()
	if r.startup.done {
		return nil
	}
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := r.Source.List(ctx, list); err != nil {
		return fmt.Errorf("list ManagedResources: %w", err)
	}
	r.seedClaims(list.Items)
	return nil
}

func (p *pass) previewCleanUp(ctx context.Context) *Prospect {
	plan := plan{input: p.stored(p.resolveScopes(p.Objects.Discover, nil))}
	p.claim(plan.input)
	var done changeSet
	if !ptr.Deref(p.mr.Spec.KeepObjects, false) {
		done.changes = p.newPruning(ctx, plan).prune(ctx, plan.recorded)
	}
	return prospectOf(plan.input, done)
}

func prospectOf(in input, done changeSet) *Prospect {
	prospect := &Prospect{Guarded: done.guarded}
	for _, problem := range in.problems {
		prospect.Problems = append(prospect.Problems, problem.err)
	}
	defined := map[schema.GroupKind]bool{}
	for _, manifest := range in.manifests {
		for _, gvk := range manifest.Defines {
			defined[gvk.GroupKind()] = true
		}
	}
	for _, change := range done.changes {
		prospect.Forecasts = append(prospect.Forecasts, forecastOf(change, defined))
	}
	slices.SortFunc(prospect.Forecasts, func(a, b Forecast) int { return a.Key().Compare(b.Key()) })
	return prospect
}

// forecastOf returns the forecast for a change. If the same manifests define the kind of the object, it is what happens
// once the kind is served.
func forecastOf(change change, defined map[schema.GroupKind]bool) Forecast {
	forecast := Forecast{Ref: change.Ref, Action: string(change.action), Reason: change.reason, Err: change.err}
	if change.manifest != nil && (change.action == actionCreate || change.action == actionApply) {
		forecast.Body = change.manifest.Body
		if change.action == actionCreate && change.manifest.Initial != nil {
			forecast.Body = change.manifest.Initial
		}
	}
	unserved := change.action == actionWait || errors.Is(change.err, target.ErrKindNotServed)
	if change.manifest != nil && unserved && defined[change.GroupKind()] && change.observation.UID == "" {
		forecast.Action, forecast.Err = string(actionCreate), nil
		forecast.Reason = fmt.Sprintf("neither the object nor its kind %s exists yet", change.Kind)
		forecast.Body = change.manifest.Body
	}
	return forecast
}
