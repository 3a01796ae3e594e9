package apiserver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/test/garden"
	"github.com/trellis-k8s/trellis/test/kit"
)

// TestDomainsOfTwoServers creates Shoots with the same or related domains at the same moment through two API servers. Each domain has one
// Shoot, which the claim names, and is free again when that Shoot is gone.
func TestDomainsOfTwoServers(t *testing.T) {
	t.Parallel()
	g := startGardenWith(t, garden.Options{ShootRules: true})
	c := newClientFor(t, g)
	second, err := g.StartReplica(t.Context())
	kit.Must(t, err)
	servers := []client.Client{directClient(t, c, g.Direct()), directClient(t, c, second)}
	shoot := prepareShoot(t, c, "domains")

	const rounds, requests = 10, 8
	for round := range rounds {
		root := fmt.Sprintf("r%d.example.org", round)
		var all sync.WaitGroup
		errs := make([]error, requests)
		for i := range requests {
			all.Go(func() {
				one := withDomain(shoot, fmt.Sprintf("s%d-%d", round, i), []string{root, "api." + root}[i/2%2])
				errs[i] = servers[i%len(servers)].Create(t.Context(), one)
			})
		}
		all.Wait()
		admitted := 0
		for _, err := range errs {
			if err == nil {
				admitted++
			} else if !apierrors.IsForbidden(err) && !apierrors.IsServiceUnavailable(err) {
				t.Errorf("the domain %s: %v, want 403 or 503", root, err)
			}
		}
		if admitted > 1 {
			t.Errorf("%d Shoots have the domain %s or the one below it", admitted, root)
		}
	}
	shoots, claims := &gardencorev1beta1.ShootList{}, &gardencorev1beta1.InternalSecretList{}
	kit.Must(t, c.List(t.Context(), shoots))
	kit.Must(t, c.List(t.Context(), claims, client.InNamespace(constants.GardenNamespace)))
	if len(shoots.Items) < rounds/2 || len(claims.Items) != len(shoots.Items) {
		t.Errorf("%d Shoots have %d claims, want at least %d with one each", len(shoots.Items), len(claims.Items), rounds/2)
	}

	one := withDomain(shoot, "last", "last.example.org")
	kit.Must(t, client.NewDryRunClient(servers[0]).Create(t.Context(), one.DeepCopy()))
	kit.Must(t, servers[1].Create(t.Context(), one.DeepCopy()))
	if err := servers[0].Create(t.Context(), one.DeepCopy()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the same Shoot once more: %v, want 409", err)
	}
	other := withDomain(shoot, "other", "below.last.example.org")
	if err := servers[0].Create(t.Context(), other.DeepCopy()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "choose another domain") {
		t.Errorf("another Shoot below its domain: %v, want 403", err)
	}
	confirm := &gardencorev1beta1.Shoot{}
	kit.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(one), confirm))
	confirmDeletion(confirm)
	kit.Must(t, c.Update(t.Context(), confirm))
	kit.Must(t, servers[1].Delete(t.Context(), one.DeepCopy()))
	kit.EventuallyTrue(t, "the domain is free", func() bool { return servers[0].Create(t.Context(), other.DeepCopy()) == nil })
}

// TestDomainSetLater sets the domain of a Shoot after its creation.
func TestDomainSetLater(t *testing.T) {
	t.Parallel()
	g := startGardenWith(t, garden.Options{ShootRules: true})
	c := newClientFor(t, g)
	shoot := prepareShoot(t, c, "domains")
	first, second := withDomain(shoot, "first", ""), withDomain(shoot, "second", "")
	kit.Must(t, c.Create(t.Context(), first))
	kit.Must(t, c.Create(t.Context(), second))
	set := func(ctx context.Context, one *gardencorev1beta1.Shoot) error {
		one.Spec.DNS = withDomain(shoot, "", "later.example.org").Spec.DNS
		return c.Update(ctx, one)
	}
	kit.Must(t, set(t.Context(), first))
	if err := set(t.Context(), second); !apierrors.IsForbidden(err) {
		t.Errorf("the domain of another Shoot: %v, want 403", err)
	}
	claims := &gardencorev1beta1.InternalSecretList{}
	kit.Must(t, c.List(t.Context(), claims, client.InNamespace(constants.GardenNamespace)))
	if len(claims.Items) != 1 || claims.Items[0].Labels[constants.LabelShootName] != "first" {
		t.Errorf("claims %+v, want one of the Shoot first", claims.Items)
	}
}

// directClient returns a client of one API server.
func directClient(t *testing.T, like client.Client, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: like.Scheme(), Mapper: like.RESTMapper()})
	kit.Must(t, err)
	return c
}

// prepareShoot creates what ruledShoot refers to, and returns it.
func prepareShoot(t *testing.T, c client.Client, profileName string) *gardencorev1beta1.Shoot {
	t.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	kit.Must(t, yaml.UnmarshalStrict([]byte(ruledShoot), shoot))
	shoot.Spec.CloudProfile.Name = profileName
	ensureNamespace(t, c, shoot.Namespace)
	profile := exampleOf(t, "CloudProfile", "", profileName, &gardencorev1beta1.CloudProfile{})
	profile.Spec.SeedSelector = nil
	kit.Must(t, c.Create(t.Context(), profile))
	project := &gardencorev1beta1.Project{}
	project.Name, project.Spec.Namespace = "ruled", &shoot.Namespace
	kit.Must(t, c.Create(t.Context(), project))
	return shoot
}

// withDomain returns a Shoot with another name and domain.
func withDomain(shoot *gardencorev1beta1.Shoot, name, domain string) *gardencorev1beta1.Shoot {
	other := shoot.DeepCopy()
	other.Name, other.Spec.DNS = name, nil
	if domain != "" {
		other.Spec.DNS = &gardencorev1beta1.DNS{Domain: &domain}
	}
	return other
}
