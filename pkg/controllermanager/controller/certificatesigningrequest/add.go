package certificatesigningrequest

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller"
	"github.com/trellis-k8s/trellis/pkg/csrapprover"
)

// name of the controller.
const name = "csr-autoapprove"

// Controller returns the controller that approves the client certificates of gardenlets.
func Controller() controller.Controller {
	const facts = "facts about the Seed of a new gardenlet"
	return controller.Controller{
		Name: name, Add: add,
		Selects: []controller.Select{{Object: &certificatesv1.CertificateSigningRequest{}, Options: cache.ByObject{Transform: csrapprover.Reduce}}},
		Rights: []controller.Right{
			controller.May("certificates of gardenlets", certificatesv1.GroupName, []string{"certificatesigningrequests"}, controller.Reads()...),
			controller.May("certificates of gardenlets", certificatesv1.GroupName, []string{"certificatesigningrequests/approval"}, "update"),
			{For: "certificates of gardenlets", Rule: rbacv1.PolicyRule{
				APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"signers"},
				ResourceNames: []string{certificatesv1.KubeAPIServerClientSignerName}, Verbs: []string{"approve"},
			}},
			controller.May("whether the requester may request the certificate of a gardenlet", authorizationv1.GroupName, []string{"subjectaccessreviews"}, "create"),
			controller.May("descriptions of bootstrap tokens", "", []string{"secrets"}, "get"),
			controller.May(facts, corev1beta1.GroupName, []string{"seeds"}, "get"),
			controller.May(facts, seedmanagementv1alpha1.GroupName, []string{"managedseeds", "gardenlets"}, "get"),
		},
	}
}

// add adds the controller to the manager of the garden.
func add(_ context.Context, mgr manager.Manager, deps controller.Deps) error {
	return controller.Start(mgr, name, &reconciler{deps.Client, deps.Live, deps.Clock}, deps.Config.CertificateSigningRequest.ConcurrentSyncs,
		controller.On(&certificatesv1.CertificateSigningRequest{}, nil, predicate.NewPredicateFuncs(isUndecided)))
}

func isUndecided(object client.Object) bool {
	csr, ok := object.(*certificatesv1.CertificateSigningRequest)
	return ok && csrapprover.Undecided(csr)
}
