package app

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/gardenlet/workloadidentity"
	"github.com/trellis-k8s/trellis/pkg/tokenrequestor"
)

// tokenRequestTimeout limits each request of the token requestors.
const tokenRequestTimeout = 30 * time.Second

// addTokens adds the controllers that store and renew credentials for the garden in Secrets of the seed.
func (g *gardenlet) addTokens(garden *gardenAccess) error {
	settings := g.config.Controllers
	identities := &workloadidentity.Reconciler{
		Seed: g.manager.GetClient(), Direct: g.manager.GetAPIReader(), Garden: garden.GetClient(), Recorder: newRecorder(g.manager),
		Clock: g.clock, Random: rand.Float64,
		Lifetime:        settings.TokenRequestorWorkloadIdentity.TokenExpirationDuration.Duration,
		ConcurrentSyncs: *settings.TokenRequestorWorkloadIdentity.ConcurrentSyncs,
	}
	return errors.Join(g.addTokenRequestor(garden), identities.AddToManager(g.manager))
}

// addTokenRequestor adds the token requestor of the class garden. All its ServiceAccounts are in the namespace of the
// Seed in the garden.
func (g *gardenlet) addTokenRequestor(garden *gardenAccess) error {
	serverClock := tokenrequestor.NewServerClock(clock.RealClock{})
	watches, err := metadata.NewForConfig(garden.GetConfig())
	if err != nil {
		return fmt.Errorf("create a client of the token requestor that watches the garden: %w", err)
	}
	config := rest.CopyConfig(garden.GetConfig())
	config.Timeout = tokenRequestTimeout
	config.Wrap(serverClock.Wrap)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create a client of the token requestor for the garden: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create a metadata client of the token requestor for the garden: %w", err)
	}
	namespace := constants.PrefixSeedNamespace + g.seedName
	reconciler := &tokenrequestor.Reconciler{
		Source: g.manager.GetClient(), Direct: g.manager.GetAPIReader(),
		Core: kube.CoreV1(), Reviews: kube.AuthenticationV1().TokenReviews(), Metadata: metadataClient, Accounts: watches,
		Target: garden.renewer.Connection.Address(), ServerClock: serverClock,
		Recorder: newRecorder(g.manager),
		Metrics:  tokenrequestor.NewMetrics(metrics.Registry),
		Clock:    g.clock, Random: rand.Float64,
		Options: tokenrequestor.Options{
			Class: resourcesv1alpha1.ClassGarden, AccountNamespace: namespace, TargetNamespaces: []string{namespace},
			ConcurrentSyncs: *g.config.Controllers.TokenRequestor.ConcurrentSyncs,
		},
	}
	return reconciler.AddToManager(g.manager)
}
