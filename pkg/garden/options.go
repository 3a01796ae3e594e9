package garden

import (
	"errors"

	"k8s.io/utils/clock"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/operatorconfig/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/seedfacts"
)

// Options configure the controller of Gardens.
type Options struct {
	// Namespace of the operator in the runtime cluster: garden. The flow emits into this namespace.
	Namespace string
	// Config of the operator, with defaults.
	Config *v1alpha1.OperatorConfiguration
	// Identity of this operator, for the status of the Garden.
	Identity *corev1beta1.Gardener
	Clock    clock.Clock
	// Version of this program.
	Version string
	// Address returns the URL of the API server of the virtual garden. If it is nil, the address of its Service is used.
	Address func() string
	// Facts about the runtime cluster; nil to read them for this controller alone.
	Facts *seedfacts.Reader
}

// validate returns an error if a required option is missing.
func (o Options) validate() error {
	if o.Namespace == "" || o.Config == nil || o.Identity == nil || o.Clock == nil {
		return errors.New("the flow of the Garden needs Namespace, Config, Identity and Clock")
	}
	return nil
}
