package garden

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/clusteraccess"
	"github.com/trellis-k8s/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-k8s/trellis/pkg/component/resourcemanager"
	"github.com/trellis-k8s/trellis/pkg/flow"
	"github.com/trellis-k8s/trellis/pkg/operator/schemes"
)

const (
	// operatorUser is the operator's user in the virtual garden.
	operatorUser = "gardener.cloud:system:gardener-operator"
	// virtualQPS limits the requests of the flow to the virtual garden, per second.
	virtualQPS = 100
)

// connect returns a client of the virtual garden. The authority that signs its certificate is one that all replicas trust.
func (r *reconciler) connect(in Inputs) (client.Client, error) {
	if why := in.unknownSecrets(); why != "" {
		return nil, errors.New("access the virtual garden: " + why)
	}
	host := "https://" + in.insideHost()
	if r.options.Address != nil {
		host = r.options.Address()
	}
	c, err := clusteraccess.Connect(clusteraccess.Connection{
		Host: host, ServerName: prefix + kubeapiserver.Name, User: operatorUser, QPS: virtualQPS, Scheme: schemes.Virtual(), Now: in.Now,
		Authority: in.Secrets[constants.SecretNameCAClient].Active.Data, Bundle: in.Secrets[constants.SecretNameCACluster].Bundle.Data,
	})
	if err != nil {
		return nil, fmt.Errorf("access the virtual garden: %w", err)
	}
	return c, nil
}

// ensureToken requests a token for the resource-manager of the virtual garden: its first one, or a new one if it was stopped for too long to renew its
// own. The resource-manager requests the tokens of all other components. The API server must be available.
func (p *pass) ensureToken(ctx context.Context) error {
	r, in, result := p.reconciler, p.in, p.Result
	if in.Deleting || in.unknownSecrets() != "" || in.hasToken(constants.PrefixShootAccess+resourcemanager.Account) || !serves(result, in.key(bundleServer)) {
		return nil
	}
	virtual, err := r.connect(in)
	if err != nil {
		return err
	}
	request, err := clusteraccess.RequestToken(ctx, virtual, resourcemanager.ShootRights())
	if err != nil {
		return fmt.Errorf("virtual garden: %w", err)
	}
	return clusteraccess.StoreToken(ctx, r.runtime, resourcemanager.ShootAccessSecret(in.Namespace), request, fieldManager, in.Now)
}

// serves reports whether the current revision of a bundle is applied and healthy.
func serves(result flow.Result, key flow.Key) bool {
	mr := result.Live.ManagedResources[key]
	if mr == nil || mr.DeletionTimestamp != nil || mr.Status.ObservedGeneration != mr.Generation {
		return false
	}
	for _, kind := range []resourcesv1alpha1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
		if resourcesv1alpha1.ConditionOf(mr.Status.Conditions, kind).Status != resourcesv1alpha1.ConditionTrue {
			return false
		}
	}
	return true
}

// userKinds are the kinds of the virtual garden whose objects prevent the deletion of a Garden: without its API, no one could delete what they stand for.
var userKinds = []string{"Seed", "Shoot", "BackupEntry"}

// observeUsers lists the objects that prevent the deletion, from the API server of the virtual garden. They remain unknown if it does not answer.
func (r *reconciler) observeUsers(ctx context.Context, in *Inputs) error {
	if !in.Served || in.Unused {
		return nil
	}
	virtual, err := r.connect(*in)
	if err != nil {
		return err
	}
	users := []string{}
	for _, kind := range userKinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind(kind + "List"))
		err := virtual.List(ctx, list, client.Limit(20))
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil // the API is not served, so its objects are not known
		}
		if err != nil {
			return fmt.Errorf("list the objects of the kind %s in the virtual garden: %w", kind, err)
		}
		for _, item := range list.Items {
			name := item.Name
			if item.Namespace != "" {
				name = item.Namespace + "/" + name
			}
			users = append(users, kind+" "+name)
		}
	}
	in.Users = &users
	return nil
}
