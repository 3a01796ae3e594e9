package webhooks

import (
	"fmt"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhooks/deletionprotection"
	"github.com/trellis-k8s/trellis/pkg/webhooks/manualdeletion"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// manualDeletionProtection returns a row for each kind, because each is selected by different labels. All rows have the
// same handler and path.
func manualDeletionProtection() []Webhook {
	row := func(
		name, what string, selector func(Placement) *metav1.LabelSelector, rules ...admissionregistrationv1.RuleWithOperations,
	) Webhook {
		return Webhook{
			Name: name + "-manual-deletion-protection", Path: manualdeletion.Path, Kind: webhookserver.Validating,
			Setting: "manualDeletionProtection", SeedOnly: true,
			Does:    "Denies the deletion of " + what + " if it is not confirmed and does not come from a part of the system.",
			Enabled: func(c *configv1alpha1.WebhooksConfiguration) bool { return c.ManualDeletionProtection.Enabled },
			Calls: &Calls{
				Rules: rules, NamespaceSelector: everything, ObjectSelector: selector, MatchConditions: unconfirmedByHand(),
				MatchPolicy: admissionregistrationv1.Exact, FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: defaultTimeout,
				FailureReason: "Objects that are deleted by mistake are not restored. Confirmed deletions, and those of kube-controller-manager, " +
					"do not need a response.",
			},
			New: func(facts Facts) (http.Handler, error) {
				settings := facts.Config.ManualDeletionProtection
				return admits(manualdeletion.NewHandler(manualdeletion.Options{Users: settings.AllowedUsers, Groups: settings.AllowedGroups}))
			},
		}
	}
	return []Webhook{
		row("managedresource", "ManagedResources of flows", always(exists(manualdeletion.LabelFlow), exists(manualdeletion.LabelFlowOwner)),
			rule(onDelete, resourcesv1alpha1.GroupName, "v1alpha1", "managedresources")),
		row("namespace", "namespaces with the control plane of a shoot", always(in(labelRole, constants.RoleShoot)),
			rule(onDelete, "", "v1", "namespaces")),
		row("secret", "Secrets that the secrets manager persists",
			always(
				in(constants.LabelSecretsManagerManagedBy, manualdeletion.ManagedBySecretsManager),
				in(constants.LabelSecretsManagerPersist, "true"),
			),
			rule(onDelete, "", "v1", "secrets")),
	}
}

// unconfirmedByHand excludes deletions that are always allowed, so that they do not depend on the webhook. Namespaces can
// then be emptied and confirmed deletions executed while no replica responds.
func unconfirmedByHand() []admissionregistrationv1.MatchCondition {
	users := ""
	for i, user := range manualdeletion.KubeControllerManager() {
		if i > 0 {
			users += ", "
		}
		users += fmt.Sprintf("%q", user)
	}
	return []admissionregistrationv1.MatchCondition{
		onlyIf("not-by-kube-controller-manager", "!(request.userInfo.username in ["+users+"])"),
		onlyIf("not-being-deleted", "!has(oldObject.metadata.deletionTimestamp)"),
		onlyIf("not-confirmed", fmt.Sprintf(`!(oldObject.metadata.?annotations[?%q].orValue("") in ["1", "t", "T", "true", "TRUE", "True"])`,
			deletionprotection.AnnotationConfirmation)),
	}
}
