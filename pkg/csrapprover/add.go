package csrapprover

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-k8s/trellis/pkg/cachetransform"
	"github.com/trellis-k8s/trellis/pkg/requeue"
)

// AddToManager registers the controller for the requests in a cache of the target cluster. The cache should use Reduce.
func (r *Reconciler) AddToManager(mgr manager.Manager, target cache.Cache) error {
	if r.Machines != nil {
		if err := mgr.Add(r.Machines); err != nil {
			return err
		}
	}
	return builder.ControllerManagedBy(mgr).
		Named(ControllerName).
		WatchesRawSource(source.Kind(target, &certificatesv1.CertificateSigningRequest{},
			&handler.TypedEnqueueRequestForObject[*certificatesv1.CertificateSigningRequest]{},
			predicate.NewTypedPredicateFuncs(Undecided))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: r.ConcurrentSyncs,
			RateLimiter:             requeue.Backoff(),
		}).
		Complete(r)
}

// Reduce removes the fields of a cached request that no decision reads. Of a request that is decided or for another
// signer, it keeps only the identity.
func Reduce(obj any) (any, error) {
	csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return obj, nil
	}
	if Undecided(csr) {
		csr.ManagedFields = nil
		return csr, nil
	}
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: cachetransform.Meta(csr)}, nil
}
