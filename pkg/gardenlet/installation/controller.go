package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/conditiontext"
	"github.com/trellis-k8s/trellis/pkg/existingtypes"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/gardenobjects"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
	"github.com/trellis-k8s/trellis/pkg/helmchart/registry"
	"github.com/trellis-k8s/trellis/pkg/latest"
)

const fieldManager = "gardenlet"

// Options are the options of the controller.
type Options struct {
	// SeedName is the name of the Seed. Namespace is the namespace of the ManagedResources in the seed.
	SeedName, Namespace string
	// Version and FeatureGates of gardenlet, which are values of charts.
	Version      string
	FeatureGates map[string]bool
	// Garden contains the address and CA of the garden, for kubeconfigs of extensions.
	Garden clientcmdapi.Cluster
	Clock  clock.PassiveClock
	// Facts about the seed; nil to read them for this controller alone.
	Facts *seedfacts.Reader
	// ConcurrentSyncs is the number of installations that are reconciled concurrently.
	ConcurrentSyncs int
}

// reconciler installs the extensions of a Seed.
type reconciler struct {
	Options

	// seed writes to the seed cluster. uncached reads from its API server. emitted reads from a cache of emitted objects.
	seed     client.Client
	uncached client.Reader
	emitted  client.Reader
	emitter  *flow.Emitter
	// garden writes, and reads through caches. objects reads single objects.
	garden     client.Client
	objects    *gardenobjects.Cache
	registries *registry.Registries
	extensions *existingtypes.Watcher

	// written are the installations as the API server of the garden returned them after the last write. The cache may be older.
	written latest.Store[*corev1beta1.ControllerInstallation]
}

// Reconcile reconciles one extension. It sends no requests if nothing has to be done.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	installation := &corev1beta1.ControllerInstallation{}
	if err := r.garden.Get(ctx, request.NamespacedName, installation); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.written.Forget(request.NamespacedName)
			r.objects.Release(userOf(request.Name))
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if installation.Spec.SeedRef == nil || installation.Spec.SeedRef.Name != r.SeedName {
		return reconcile.Result{}, nil
	}
	installation = r.written.Newest(installation)
	if installation.DeletionTimestamp != nil {
		return reconcile.Result{}, r.uninstall(ctx, installation)
	}
	result, err := r.install(ctx, installation)
	findings := result.findings
	if required, known := r.required(ctx, installation); known {
		findings = append(findings, required)
	}
	return reconcile.Result{RequeueAfter: result.again}, errors.Join(err, r.report(ctx, installation, findings))
}

// installed is the result of an attempt to install an extension.
type installed struct {
	findings []finding
	// again is the delay of the next attempt without a change. 0 means never.
	again time.Duration
}

// install emits the bundle of an extension. If the bundle cannot be created, the running objects remain unchanged.
// Deployments without a chart are installed by others.
func (r *reconciler) install(ctx context.Context, installation *corev1beta1.ControllerInstallation) (installed, error) {
	key := keyOf(r.Namespace, installation.Name)
	readAll := r.objects.Begin(userOf(installation.Name))
	in, err := r.observe(ctx, installation)
	if err == nil {
		readAll()
	}
	if err == nil && in == nil {
		return installed{}, nil
	}
	var bundle flow.Bundle
	if err == nil {
		bundle, err = in.Bundle(ctx, key)
	}
	var why *invalid
	if errors.As(err, &why) {
		return r.invalid(ctx, key, in, why)
	}
	if err != nil {
		return installed{}, err
	}
	if err := r.keep(ctx, installation); err != nil {
		return installed{}, err
	}
	result, err := r.emitter.Emit(ctx, ownerOf(installation), flow.Plan{Bundles: []flow.Bundle{bundle}})
	valid := finding{corev1beta1.ControllerInstallationValid, corev1beta1.ConditionTrue, reasonValid, "The chart was rendered."}
	if err != nil {
		return installed{findings: notEmitted(valid, err, in.resources().Redact(flow.ReasonOf(err)))}, err
	}
	found := installed{findings: append([]finding{valid}, findingsOf(r.live(result, key, len(result.Written) > 0), problemOf(result, key))...)}
	if next := result.Plan.NextAt(r.Clock.Now()); !next.IsZero() {
		found.again = max(next.Sub(r.Clock.Now()), time.Millisecond)
	}
	return found, nil
}

// keep adds the finalizer before anything is written to the seed. Installations without a chart do not get it.
func (r *reconciler) keep(ctx context.Context, installation *corev1beta1.ControllerInstallation) error {
	if controllerutil.ContainsFinalizer(installation, constants.FinalizerControllerInstallation) {
		return nil
	}
	return r.patch(ctx, installation, func() { controllerutil.AddFinalizer(installation, constants.FinalizerControllerInstallation) })
}

// live returns the ManagedResource before an emission, or nil if it did not exist. If it was just written, its new
// generation is not observed yet.
func (r *reconciler) live(result flow.Result, key flow.Key, written bool) *resourcesv1alpha1.ManagedResource {
	mr := result.Live.ManagedResources[key]
	if mr == nil || !written {
		return mr
	}
	mr = mr.DeepCopy()
	mr.Generation++
	return mr
}

// invalid returns the conditions of an extension that cannot be installed as declared. The conditions other than Valid
// describe the running objects.
func (r *reconciler) invalid(ctx context.Context, key flow.Key, in *Inputs, why *invalid) (installed, error) {
	text := textOf(in, why)
	mr, err := r.managedResource(ctx, key)
	if err != nil {
		return installed{}, err
	}
	found := installed{findings: append(
		[]finding{{corev1beta1.ControllerInstallationValid, corev1beta1.ConditionFalse, why.reason, text}}, findingsOf(mr, "")...,
	)}
	if why.passes {
		return found, errors.New(text) // retry
	}
	return found, nil
}

// textOf returns the message of a problem, without data of Secrets, and identical for the same cause. in is nil if the
// inputs could not be read.
func textOf(in *Inputs, why *invalid) string {
	text := conditiontext.Stable(why.Error())
	if in != nil {
		text = in.resources().Redact(text)
	}
	return text
}

// managedResource reads the ManagedResource of an extension from the cache. It returns nil if it does not exist.
func (r *reconciler) managedResource(ctx context.Context, key flow.Key) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	err := r.emitted.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, mr)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ManagedResource %s: %w", key, err)
	}
	if err != nil || mr.Labels[flow.LabelFlow] != FlowName {
		return nil, nil //nolint:nilerr // it does not exist
	}
	return mr, nil
}

// required returns whether extension objects of the registration exist, if that is known.
func (r *reconciler) required(ctx context.Context, installation *corev1beta1.ControllerInstallation) (finding, bool) {
	registration := &corev1beta1.ControllerRegistration{}
	if err := r.garden.Get(ctx, client.ObjectKey{Name: installation.Spec.RegistrationRef.Name}, registration); err != nil {
		return finding{}, false
	}
	id, known := r.extensions.Existing(registration.Spec.Resources)
	return requiredFinding(id), known
}

// report writes the conditions if they have changed.
func (r *reconciler) report(ctx context.Context, installation *corev1beta1.ControllerInstallation, findings []finding) error {
	conditions := update(installation.Status.Conditions, findings, r.Clock.Now())
	if equality.Semantic.DeepEqual(conditions, installation.Status.Conditions) {
		return nil
	}
	before := latest.StatusPatch(installation.DeepCopy())
	installation.Status.Conditions = conditions
	if err := client.IgnoreNotFound(r.garden.Status().Patch(ctx, installation, before, client.FieldOwner(fieldManager))); err != nil {
		return fmt.Errorf("write the status of ControllerInstallation %s: %w", installation.Name, err)
	}
	r.written.Remember(installation)
	return nil
}

// patch changes an installation. It fails with a conflict if the installation has changed since it was read.
func (r *reconciler) patch(ctx context.Context, installation *corev1beta1.ControllerInstallation, change func()) error {
	before := client.MergeFromWithOptions(installation.DeepCopy(), client.MergeFromWithOptimisticLock{})
	change()
	if err := client.IgnoreNotFound(r.garden.Patch(ctx, installation, before, client.FieldOwner(fieldManager))); err != nil {
		return fmt.Errorf("write ControllerInstallation %s: %w", installation.Name, err)
	}
	r.written.Remember(installation)
	return nil
}

// all returns requests for all selected installations of the Seed.
func (r *reconciler) all(ctx context.Context, selected func(*corev1beta1.ControllerInstallation) bool) []reconcile.Request {
	var list corev1beta1.ControllerInstallationList
	if err := r.garden.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the process ends, or the cache has not synced and its watch reports all installations once it has
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if item := &list.Items[i]; item.Spec.SeedRef != nil && item.Spec.SeedRef.Name == r.SeedName && selected(item) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(item)})
		}
	}
	return slices.Clip(requests)
}
