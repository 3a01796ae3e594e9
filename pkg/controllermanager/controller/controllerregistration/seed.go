package controllerregistration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/references"
	"github.com/trellis-k8s/trellis/pkg/installation"
)

const (
	// retryAfter is the delay of the next decision if an object changed during the last one.
	retryAfter = time.Second
)

// Reasons of Events.
//
// +events:on=Seed
const (
	eventProblem = "ExtensionsNotInstalled" // Warning: extensions that the Seed needs cannot be installed, or unneeded ones are kept
)

// actionInstall is the action of these Events.
const actionInstall = "Install"

// seedReconciler creates the ControllerInstallations that Seeds need.
type seedReconciler struct {
	controllers

	// reported are the last reported problems, by the names of Seeds. They are not reported again.
	reported sync.Map
}

// Reconcile creates, updates and deletes the installations in a Seed. It sends no requests if nothing has to be done.
func (r *seedReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seed := &corev1beta1.Seed{}
	if err := r.cached.Get(ctx, request.NamespacedName, seed); err != nil {
		r.reported.Delete(request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if seed.DeletionTimestamp == nil {
		if err := r.protector().Add(ctx, seed, constants.FinalizerControllerRegistration); err != nil {
			return reconcile.Result{}, err
		}
	}
	in, err := r.inputs(ctx, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	decision := installation.Decide(in)
	r.report(ctx, seed, decision.Problems)
	again, err := r.carryOut(ctx, in, decision)
	if err != nil {
		return reconcile.Result{}, err
	}
	if again {
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	if seed.DeletionTimestamp == nil || len(in.Installations) > 0 {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.releaseSeed(ctx, seed)
}

// report logs problems and emits an Event, unless the same problems were reported last.
func (r *seedReconciler) report(ctx context.Context, seed *corev1beta1.Seed, problems []string) {
	text := strings.Join(problems, "; ")
	if before, known := r.reported.Swap(seed.Name, text); known && before == text || text == "" {
		return
	}
	log.FromContext(ctx).Info("Not all extensions can be installed", "problems", text)
	r.recorder.Eventf(seed, nil, corev1.EventTypeWarning, eventProblem, actionInstall, "%s", text)
}

// releaseSeed removes the finalizer from a Seed without installations. The watch reports their deletion.
func (r *seedReconciler) releaseSeed(ctx context.Context, seed *corev1beta1.Seed) error {
	_, err := r.protector().Holder.Release(ctx, seed, constants.FinalizerControllerRegistration,
		func(ctx context.Context, reader client.Reader) ([]string, error) {
			var left corev1beta1.ControllerInstallationList
			if err := reader.List(ctx, &left, client.MatchingFields{indexInstallationSeed: seed.Name}, client.Limit(1)); err != nil {
				return nil, fmt.Errorf("list the ControllerInstallations in Seed %s: %w", seed.Name, err)
			}
			var names []string
			for _, item := range left.Items {
				names = append(names, item.Name)
			}
			return names, nil
		})
	return err
}

// inputs reads the inputs of the decision from the cache. They must not be modified.
func (r *seedReconciler) inputs(ctx context.Context, seed *corev1beta1.Seed) (installation.Inputs, error) {
	in := installation.Inputs{Seed: seed, ResourceVersions: map[installation.Resource]string{}}
	var registrations corev1beta1.ControllerRegistrationList
	var deployments gardencorev1.ControllerDeploymentList
	var installations corev1beta1.ControllerInstallationList
	var shoots corev1beta1.ShootList
	var buckets corev1beta1.BackupBucketList
	var entries corev1beta1.BackupEntryList
	inSeed := client.MatchingFields{indexSeed: seed.Name}
	err := errors.Join(
		r.cached.List(ctx, &registrations, client.UnsafeDisableDeepCopy),
		r.cached.List(ctx, &deployments, client.UnsafeDisableDeepCopy),
		r.cached.List(ctx, &installations, client.UnsafeDisableDeepCopy, client.MatchingFields{indexInstallationSeed: seed.Name}),
		r.cached.List(ctx, &shoots, client.UnsafeDisableDeepCopy, inSeed),
		r.cached.List(ctx, &buckets, client.UnsafeDisableDeepCopy),
		r.cached.List(ctx, &entries, client.UnsafeDisableDeepCopy, inSeed),
	)
	if err != nil {
		return in, fmt.Errorf("read the requirements of Seed %s: %w", seed.Name, err)
	}
	in.Registrations, in.Deployments = pointers(registrations.Items), pointers(deployments.Items)
	in.Installations = pointers(installations.Items)
	in.Shoots, in.Buckets, in.Entries = pointers(shoots.Items), pointers(buckets.Items), pointers(entries.Items)
	for _, kind := range []string{references.Secret, references.ConfigMap} {
		if err := r.addMetadata(ctx, &in, kind); err != nil {
			return in, err
		}
	}
	return in, nil
}

// addMetadata adds default domains and the versions of referenced objects, from the metadata of the garden's Secrets or ConfigMaps.
func (r *seedReconciler) addMetadata(ctx context.Context, in *installation.Inputs, kind string) error {
	var objects metav1.PartialObjectMetadataList
	objects.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	if err := r.cached.List(ctx, &objects, client.UnsafeDisableDeepCopy, client.InNamespace(constants.GardenNamespace)); err != nil {
		return fmt.Errorf("list the %ss in the namespace %s: %w", kind, constants.GardenNamespace, err)
	}
	for i := range objects.Items {
		object := &objects.Items[i]
		domain := object.Annotations[constants.AnnotationDNSDomain]
		switch {
		case object.Labels[constants.LabelGardenRole] == constants.RoleResourceReference:
			in.ResourceVersions[installation.Resource{Kind: kind, Name: object.Name}] = object.ResourceVersion
		case kind == references.Secret && object.Labels[constants.LabelGardenRole] == constants.RoleDefaultDomain && domain != "":
			in.DefaultDomains = append(in.DefaultDomains, installation.Domain{
				Name: domain, Type: object.Annotations[constants.AnnotationDNSProvider],
			})
		}
	}
	return nil
}

// pointers returns pointers to the items.
func pointers[T any](items []T) []*T {
	all := make([]*T, 0, len(items))
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

// carryOut executes the steps of a decision. again is set if another client changed an installation, so that the decision must be repeated.
func (r *seedReconciler) carryOut(ctx context.Context, in installation.Inputs, decision installation.Decision) (again bool, err error) {
	seen := map[string]*corev1beta1.ControllerInstallation{}
	for _, installation := range in.Installations {
		seen[installation.Name] = installation
	}
	var errs []error
	for _, step := range decision.Steps {
		name := step.Installation.Name
		switch err := r.take(ctx, step, seen[name]); {
		case apierrors.IsConflict(err):
			again = true
		case err != nil:
			errs = append(errs, fmt.Errorf("%s ControllerInstallation %s: %w", strings.ToLower(string(step.Action)), name, err))
		default:
			log.FromContext(ctx).Info("Changed an installation", "action", step.Action, "installation", name, "reason", step.Reason)
		}
	}
	return again, errors.Join(errs...)
}

// take executes one step.
func (r *seedReconciler) take(ctx context.Context, step installation.Step, before *corev1beta1.ControllerInstallation) error {
	switch step.Action {
	case installation.ActionCreate:
		// If it already exists, it was just created and the cache does not contain it yet.
		return client.IgnoreAlreadyExists(r.cached.Create(ctx, step.Installation.DeepCopy(), controller.FieldManager))
	case installation.ActionUpdate:
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return client.IgnoreNotFound(r.cached.Patch(ctx, step.Installation.DeepCopy(), patch, controller.FieldManager))
	default:
		version := before.ResourceVersion // fail if the condition Required has become True
		return client.IgnoreNotFound(r.cached.Delete(ctx, before.DeepCopy(), client.Preconditions{UID: &before.UID, ResourceVersion: &version}))
	}
}
