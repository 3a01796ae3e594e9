package manualdeletion

import (
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks/deletionprotection"
	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit"
)

// The labels of ManagedResources that flows emit. The package flow sets them. It is not imported here, to keep it out of
// the resource-manager.
const (
	LabelFlow      = "flow.resources.gardener.cloud/name"
	LabelFlowOwner = "flow.resources.gardener.cloud/owner-uid"
)

// ManagedBySecretsManager is the value of the label managed-by of Secrets that the secrets manager manages.
const ManagedBySecretsManager = "secrets-manager"

// kind is a kind of protected objects.
type kind struct {
	// protects reports whether an object with these labels is protected.
	protects func(labels map[string]string) bool
	// resource is the name of the kind for kubectl.
	resource string
	// consequence describes the effect of a deletion. The text follows the kind and name of the object.
	consequence func(labels map[string]string) string
}

var kinds = map[metav1.GroupVersionResource]kind{
	{Group: resourcesv1alpha1.GroupName, Version: "v1alpha1", Resource: "managedresources"}: {
		protects: func(labels map[string]string) bool { return labels[LabelFlow] != "" && labels[LabelFlowOwner] != "" },
		resource: "managedresource",
		consequence: func(labels map[string]string) string {
			return fmt.Sprintf("belongs to the flow %q, and all objects that it applies are deleted with it", labels[LabelFlow])
		},
	},
	{Version: "v1", Resource: "namespaces"}: {
		protects: func(labels map[string]string) bool { return labels[constants.LabelGardenRole] == constants.RoleShoot },
		resource: "namespace",
		consequence: func(map[string]string) string {
			return "holds the control plane of a shoot, and all of it is deleted with the namespace"
		},
	},
	{Version: "v1", Resource: "secrets"}: {
		protects: func(labels map[string]string) bool {
			return labels[constants.LabelSecretsManagerPersist] == "true" &&
				labels[constants.LabelSecretsManagerManagedBy] == ManagedBySecretsManager
		},
		resource: "secret",
		consequence: func(map[string]string) string {
			return "has a key or a certificate authority that cannot be generated again, and what it has encrypted or signed depends on it"
		},
	},
}

// allowedUsers are the users of kube-controller-manager that delete the objects of terminating namespaces and objects
// without an owner. All its controllers use one user, or each has its own.
var allowedUsers = []string{
	"system:kube-controller-manager",
	"system:serviceaccount:kube-system:generic-garbage-collector",
	"system:serviceaccount:kube-system:namespace-controller",
}

// KubeControllerManager returns the users of kube-controller-manager whose deletions are never denied.
func KubeControllerManager() []string { return slices.Clone(allowedUsers) }

// bySystem reports whether a request comes from a component of the system.
func (o Options) bySystem(request *admission.Request) bool {
	user := request.UserInfo
	return slices.Contains(allowedUsers, user.Username) || slices.Contains(o.Users, user.Username) ||
		slices.ContainsFunc(user.Groups, func(group string) bool { return slices.Contains(o.Groups, group) })
}

// check returns an error if the deletion of an object is denied, nil otherwise.
func check(request *admission.Request, object *metav1.PartialObjectMetadata) error {
	kind, known := kinds[request.Resource]
	if !known || !kind.protects(object.Labels) || object.DeletionTimestamp != nil || deletionprotection.IsConfirmed(object) {
		return nil
	}
	name, flag := object.Name, ""
	if object.Namespace != "" {
		name, flag = object.Namespace+"/"+object.Name, " --namespace "+object.Namespace
	}
	return admit.Refuse(http.StatusForbidden, "%s %s %s. To delete it nevertheless, confirm that first: kubectl annotate %s %s%s %s=true",
		request.Kind.Kind, name, kind.consequence(object.Labels), kind.resource, object.Name, flag, deletionprotection.AnnotationConfirmation)
}
