package gardenletdeployer

import (
	"fmt"
	"time"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// AnnotationReplaces is the fingerprint of the kubeconfig that the operation renew-kubeconfig of an object replaces.
const AnnotationReplaces = "gardenlet.gardener.cloud/replaces-kubeconfig"

// operation is the annotation that requests an operation of an object.
const operation = constants.AnnotationGardenerOperation

// noKubeconfig is the value of AnnotationReplaces if there was no kubeconfig.
const noKubeconfig = "none"

// State is what the next step for the credentials of a gardenlet depends on.
type State struct {
	Bootstrap v1alpha1.Bootstrap
	// Annotations of the object.
	Annotations map[string]string
	// Stored is the kubeconfig of the gardenlet.
	Stored Stored
	// Offered is when the credentials expire that the gardenlet has for its first certificate; zero if it has none.
	Offered time.Time
	// Allowed is set if the garden permits new credentials.
	Allowed bool
	Now     time.Time
}

// Step is what to do next for the credentials of a gardenlet.
type Step struct {
	// Mark is the value of AnnotationReplaces to write first; empty to leave it.
	Mark string
	// Offer is set to give the gardenlet credentials for a certificate, and Discard to delete its kubeconfig afterwards.
	Offer, Discard bool
	// Finish is set if the operation renew-kubeconfig is complete.
	Finish bool
	// Missing is why the gardenlet cannot get credentials; empty if it has some, or gets them by this step.
	Missing string
}

// Next returns the next step. A kubeconfig is deleted only after its replacement can be requested.
func Next(s State) Step {
	renews := s.Annotations[operation] == constants.OperationRenewKubeconfig
	replaces := s.Annotations[AnnotationReplaces]
	offered := s.Offered.After(s.Now)
	expired := !s.Stored.Expires.IsZero() && !s.Stored.Expires.After(s.Now)
	has := s.Stored.Fingerprint != ""
	switch {
	case s.Bootstrap == v1alpha1.BootstrapNone:
		return Step{Finish: renews}
	case renews && replaces == "" && has:
		return Step{Mark: s.Stored.Fingerprint, Offer: true, Discard: true}
	case renews && replaces == "":
		return Step{Mark: noKubeconfig, Offer: !offered}
	case renews && has && s.Stored.Fingerprint != replaces:
		return Step{Finish: true}
	case renews:
		return Step{Offer: !offered, Discard: has}
	case has && !expired, !has && offered:
		return Step{}
	case !s.Allowed && has:
		return Step{Missing: fmt.Sprintf("the certificate of the gardenlet has expired, and the garden does not know this yet: annotate the object with %s=%s",
			operation, constants.OperationRenewKubeconfig)}
	case !s.Allowed:
		return Step{Missing: fmt.Sprintf("the kubeconfig of the gardenlet is gone, while its certificate is valid: annotate the object with %s=%s",
			operation, constants.OperationRenewKubeconfig)}
	}
	return Step{Offer: !offered, Discard: has}
}
