package apiserver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenadmission "github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/shootvalidator"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/apiserver/domains"
)

// eventInterval is the time between looks at the claims in memory, until the server's own claim is among them.
const eventInterval = 2 * time.Millisecond

// newClaims returns the claims of domains, and adds the hook that starts to read them. It returns nil if the plugin that compares the
// domains of Shoots is switched off.
func (o *Options) newClaims(config *server.RecommendedConfig, live client.Client, kube kubernetes.Interface) (*domains.Claims, error) {
	if slices.Contains(o.Recommended.Admission.DisablePlugins, shootvalidator.Plugin.Name) {
		return nil, nil
	}
	selector, err := labels.Parse(domains.Selector())
	if err != nil {
		return nil, fmt.Errorf("select the claims of domains: %w", err)
	}
	f := &facts{live: live, stored: o.stored, only: client.ListOptions{Namespace: constants.GardenNamespace, LabelSelector: selector}}
	claims := reader(f, gardencorev1beta1.Resource("internalsecrets"), &gardencorev1beta1.InternalSecretList{}, &gardencorev1beta1.InternalSecret{}, nil, domains.Index)
	if err := config.AddPostStartHook("gardener-domain-claims", f.run); err != nil {
		return nil, fmt.Errorf("set up the claims of domains: %w", err)
	}
	return &domains.Claims{
		Client: live, Related: relatedClaims(claims), Now: time.Now,
		MakeNamespace: func(ctx context.Context) error { return ensureNamespace(ctx, kube, constants.GardenNamespace) },
	}, nil
}

// relatedClaims returns a function that looks up claims in memory when that has reached the revision of the given claim.
func relatedClaims(claims *informed[*gardencorev1beta1.InternalSecret]) domains.Related {
	return func(ctx context.Context, claim *gardencorev1beta1.InternalSecret, domain string) ([]*gardencorev1beta1.InternalSecret, error) {
		if err := claims.reaches(ctx, claim); err != nil {
			return nil, err
		}
		var found []*gardencorev1beta1.InternalSecret
		for _, key := range gardenadmission.RelatedDomains(domain) {
			some, err := claims.By(ctx, domains.Index, key)
			if err != nil {
				return nil, err
			}
			found = append(found, some...)
		}
		return found, nil
	}
}

// reaches waits until an informer knows an object at its revision or a later one, and with it all that was written before. It
// returns 503 if that takes too long.
func (i *informed[T]) reaches(ctx context.Context, object T) error {
	err := wait.PollUntilContextTimeout(ctx, eventInterval, factsTimeout, true, func(context.Context) (bool, error) {
		found, exists, err := i.informer.GetStore().GetByKey(gardenadmission.Key(object.GetNamespace(), object.GetName()))
		if typed, is := found.(T); err == nil && exists && is {
			order, err := resourceversion.CompareResourceVersion(typed.GetResourceVersion(), object.GetResourceVersion())
			return order >= 0, err
		}
		return false, err
	})
	if err != nil {
		return gardenadmission.Unavailable("the API server does not know all objects of type %s yet: %v; try again", i.name, err)
	}
	return nil
}
