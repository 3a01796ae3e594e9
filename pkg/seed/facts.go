package seed

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/operator/v1alpha1"
)

// facts are inputs that are read once at the start of an operation, because they rarely change.
type facts struct {
	// version of Kubernetes in the seed, such as 1.37.1.
	version string
	// isGarden is set if the seed is also the garden.
	isGarden bool
}

// versionOf returns a function that reads the version of the seed's API server.
func versionOf(config *rest.Config, http *http.Client) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		asked, err := discovery.NewDiscoveryClientForConfigAndClient(config, http)
		if err != nil {
			return "", fmt.Errorf("connect to the seed: %w", err)
		}
		version, err := asked.ServerVersion()
		if err != nil {
			return "", fmt.Errorf("read the version of the seed: %w", err)
		}
		return strings.TrimPrefix(version.GitVersion, "v"), nil
	}
}

// readFacts reads the facts from the seed.
func (r *reconciler) readFacts(ctx context.Context) (*facts, error) {
	version, err := r.version(ctx)
	if err != nil {
		return nil, err
	}
	read := &facts{version: version}
	gardens := metav1.PartialObjectMetadataList{}
	gardens.SetGroupVersionKind(operatorv1alpha1.SchemeGroupVersion.WithKind("GardenList"))
	err = r.uncached.List(ctx, &gardens, client.Limit(1))
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("check whether the seed is the garden: %w", err)
	}
	read.isGarden = len(gardens.Items) > 0
	return read, nil
}
