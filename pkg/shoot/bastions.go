package shoot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/shoot/extensionobjects"
)

const (
	// waitBastions is the wait of a deletion for the Bastions of the Shoot.
	waitBastions = "bastions"
	// bastionTimeout is how long an extension may take to delete a Bastion (Gardener).
	bastionTimeout = 20 * time.Minute
	// bastionForcedTimeout is how long a forced deletion waits for Bastions (Gardener). Then the namespace is deleted and
	// their finalizers are removed.
	bastionForcedTimeout = 5 * time.Minute
)

// Bastion is a Bastion in the namespace of the control plane: a host through which users reach the nodes of a Shoot.
type Bastion struct {
	Name string
	// Deleted is when its deletion started, or zero. Forced is set if it has the annotation for a forced deletion.
	Deleted time.Time
	Forced  bool
}

// observeBastions reads the Bastions of a Shoot that is being deleted.
func (r *reconciler) observeBastions(ctx context.Context, in *Inputs) error {
	if !in.Deleting && in.Phase != phaseMigrate || in.Shoot.Status.TechnicalID == "" {
		return nil
	}
	objects, err := r.extensions.List(ctx, extensionobjects.Bastions(), in.Shoot)
	if err != nil {
		return err
	}
	for _, object := range objects {
		bastion := Bastion{Name: object.GetName(), Forced: isTrue(object.GetAnnotations()[constants.AnnotationConfirmationForceDeletion])}
		if at := object.GetDeletionTimestamp(); at != nil {
			bastion.Deleted = at.Time
		}
		in.Bastions = append(in.Bastions, bastion)
	}
	return nil
}

// awaitBastions returns the plan of a deletion while Bastions exist. All other objects remain, because Bastions use the
// network and credentials.
func (in Inputs) awaitBastions() flow.Plan {
	since := in.Now
	for _, bastion := range in.Bastions {
		if !bastion.Deleted.IsZero() && bastion.Deleted.Before(since) {
			since = bastion.Deleted
		}
	}
	return flow.Plan{Deleting: true, Waits: []flow.Wait{{
		Name: waitBastions, Reason: in.bastionNames() + " of the Shoot are deleted first", Holds: in.Emitted, Deadline: since.Add(bastionTimeout),
		Code: corev1beta1.ErrorCleanupClusterResources,
	}}}
}

// heldByBastions names the Bastions for which a forced deletion waits before it deletes the namespace, and returns when it stops waiting.
func (in Inputs) heldByBastions() (why string, until time.Time) {
	for _, bastion := range in.Bastions {
		end := in.Now.Add(bastionForcedTimeout)
		if !bastion.Deleted.IsZero() {
			end = bastion.Deleted.Add(bastionForcedTimeout)
		}
		if end.After(until) {
			until = end
		}
	}
	if !until.After(in.Now) {
		return "", time.Time{}
	}
	return in.bastionNames() + " of the Shoot are deleted before the namespace", until
}

// bastionNames names all Bastions for messages.
func (in Inputs) bastionNames() string {
	var names []string
	for _, bastion := range in.Bastions {
		names = append(names, bastion.Name)
	}
	return "the Bastions " + strings.Join(names, ", ")
}

// deleteBastions deletes the Bastions of a Shoot that is being deleted. If the deletion is forced, it annotates them for their extension.
func (p *pass) deleteBastions(ctx context.Context) error {
	r, in := p.reconciler, p.in
	for _, bastion := range in.Bastions {
		object := &extensionsv1alpha1.Bastion{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: bastion.Name}}
		if in.forced() && !bastion.Forced {
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
				"annotations": map[string]string{constants.AnnotationConfirmationForceDeletion: "true"},
			}})
			if err != nil {
				return err
			}
			err = r.seed.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("force the deletion of Bastion %s/%s: %w", in.Namespace, bastion.Name, err)
			}
		}
		if !bastion.Deleted.IsZero() {
			continue
		}
		if err := client.IgnoreNotFound(r.seed.Delete(ctx, object)); err != nil {
			return fmt.Errorf("delete Bastion %s/%s: %w", in.Namespace, bastion.Name, err)
		}
	}
	return nil
}
