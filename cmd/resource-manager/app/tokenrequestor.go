package app

import (
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/tokenrequestor"
)

// tokenRequestTimeout limits each request of the token requestor.
const tokenRequestTimeout = 30 * time.Second

// addTokenRequestor adds the token requestor of the class shoot if it is enabled.
func addTokenRequestor(mgr manager.Manager, config *configv1alpha1.ResourceManagerConfiguration, targetConfig *rest.Config,
	identity string,
) error {
	settings := config.Controllers.TokenRequestor
	if !settings.Enabled {
		return nil
	}
	serverClock := tokenrequestor.NewServerClock(clock.RealClock{})
	watches, err := metadata.NewForConfig(targetConfig)
	if err != nil {
		return fmt.Errorf("create a client of the token requestor that watches the target cluster: %w", err)
	}
	targetConfig = rest.CopyConfig(targetConfig)
	targetConfig.Timeout = tokenRequestTimeout
	targetConfig.Wrap(serverClock.Wrap)
	client, err := kubernetes.NewForConfig(targetConfig)
	if err != nil {
		return fmt.Errorf("create a client of the token requestor for the target cluster: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(targetConfig)
	if err != nil {
		return fmt.Errorf("create a metadata client of the token requestor for the target cluster: %w", err)
	}
	reconciler := &tokenrequestor.Reconciler{
		Source: mgr.GetClient(), Direct: mgr.GetAPIReader(),
		Core: client.CoreV1(), Reviews: client.AuthenticationV1().TokenReviews(), Metadata: metadataClient, Accounts: watches,
		Target: targetConfig, ServerClock: serverClock,
		Recorder: newRecorder(mgr, "resource-manager"),
		Metrics:  tokenrequestor.NewMetrics(metrics.Registry),
		Clock:    clock.RealClock{}, Random: rand.Float64,
		Options: tokenrequestor.Options{
			Class: resourcesv1alpha1.ClassShoot, ClusterID: identity,
			Namespaces:        config.SourceClientConnection.Namespaces,
			AccountNamespaces: settings.ServiceAccountNamespaces, TargetNamespaces: settings.TargetSecretNamespaces,
			CleanUp: settings.CleanUp, ConcurrentSyncs: *settings.ConcurrentSyncs,
		},
	}
	return reconciler.AddToManager(mgr)
}
