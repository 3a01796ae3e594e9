package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/measure"
)

const (
	// namespaceGarden has the leases of the programs, and namespaceLeases those of the Seeds. The chart of the API server contains the latter.
	namespaceGarden, namespaceLeases = "garden", "gardener-system-seed-lease"
	// secretDomain has the credentials of the domains of all Seeds.
	secretDomain = "internal-domain"
	// renewal is the period with which a gardenlet renews the lease of its Seed.
	renewal = 10 * time.Second
)

func seedName(i int) string    { return fmt.Sprintf("seed-%02d", i) }
func projectName(i int) string { return fmt.Sprintf("p%03d", i) }

// createSeed creates a Seed and reports that its gardenlet has set it up.
func (g *world) createSeed(ctx context.Context, i int) error {
	account := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespaceGarden, Name: secretDomain}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName(i)}, Spec: corev1beta1.SeedSpec{
		Provider: corev1beta1.SeedProvider{Type: "local", Region: "local"},
		Networks: corev1beta1.SeedNetworks{Nodes: ptr.To("10.0.0.0/16"), Pods: "10.1.0.0/16", Services: "10.2.0.0/16"},
		DNS: corev1beta1.SeedDNS{
			Provider: &corev1beta1.SeedDNSProvider{Type: "local", CredentialsRef: &account},
			Internal: &corev1beta1.SeedDNSProviderConfig{Type: "local", Domain: "internal.example.org", CredentialsRef: account},
		},
		Ingress: &corev1beta1.Ingress{Domain: seedName(i) + ".example.org", Controller: corev1beta1.IngressController{Kind: "nginx"}},
	}}
	if err := g.Create(ctx, seed); err != nil {
		return fmt.Errorf("create Seed %s: %w", seed.Name, err)
	}
	if err := g.renew(ctx, i); err != nil {
		return err
	}
	before := client.MergeFrom(seed.DeepCopy())
	places := corev1.ResourceList{corev1beta1.SeedResourceShoots: *resource.NewQuantity(int64(2*g.options.Shoots+requests), resource.DecimalSI)}
	seed.Status.Capacity, seed.Status.Allocatable = places, places
	seed.Status.LastOperation = &corev1beta1.LastOperation{
		Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.Now(),
	}
	seed.Status.ObservedGeneration = seed.Generation
	seed.Status.Conditions = []corev1beta1.Condition{{
		Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue, Reason: "Ready", Message: "It is.",
		LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
	}}
	if err := g.Status().Patch(ctx, seed, before); err != nil {
		return fmt.Errorf("write the status of Seed %s: %w", seed.Name, err)
	}
	return nil
}

// renew renews the lease of a Seed as its gardenlet does.
func (g *world) renew(ctx context.Context, i int) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceLeases, Name: seedName(i)}}
	spec := coordinationv1.LeaseSpec{HolderIdentity: ptr.To("gardenlet"), RenewTime: ptr.To(metav1.NowMicro())}
	err := g.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	if err == nil {
		lease.Spec = spec
		err = g.Update(ctx, lease)
	} else if client.IgnoreNotFound(err) == nil {
		lease.Spec = spec
		err = g.Create(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("renew the lease of Seed %s: %w", seedName(i), err)
	}
	return nil
}

// renewAll renews the leases of all Seeds until the context ends.
func (g *world) renewAll(ctx context.Context) error {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := measure.Each(ctx, 0, g.options.Seeds, g.renew); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (g *world) createProject(ctx context.Context, i int) error {
	project := &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: projectName(i)}}
	project.Spec.Namespace = ptr.To(constants.PrefixProjectNamespace + project.Name)
	if err := g.Create(ctx, project); err != nil {
		return fmt.Errorf("create Project %s: %w", project.Name, err)
	}
	return nil
}

// shoot returns a Shoot in one of the Projects.
func (g *world) shoot(i int) *corev1beta1.Shoot {
	return measure.Shoot(constants.PrefixProjectNamespace+projectName(i%g.options.Projects), fmt.Sprintf("s%05d", i))
}

func (g *world) createShoot(ctx context.Context, i int) error {
	shoot := g.shoot(i)
	if err := g.Create(ctx, shoot); err != nil {
		return fmt.Errorf("create Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	return nil
}

// succeed reports that gardenlets have created all Shoots.
func (g *world) succeed(ctx context.Context) error {
	shoots := &corev1beta1.ShootList{}
	if err := g.List(ctx, shoots); err != nil {
		return fmt.Errorf("list the Shoots: %w", err)
	}
	return measure.Each(ctx, 0, len(shoots.Items), func(ctx context.Context, i int) error {
		shoot := &shoots.Items[i]
		before := client.MergeFrom(shoot.DeepCopy())
		shoot.Status.LastOperation = &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.Now(),
		}
		shoot.Status.ObservedGeneration, shoot.Status.SeedName, shoot.Status.UID = shoot.Generation, shoot.Spec.SeedName, shoot.UID
		shoot.Status.TechnicalID = "shoot--" + shoot.Namespace[len(constants.PrefixProjectNamespace):] + "--" + shoot.Name
		if err := g.Status().Patch(ctx, shoot, before); err != nil {
			return fmt.Errorf("write the status of Shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
		}
		return nil
	})
}
