// Package admissioncontroller has the webhooks of the admission controller: rules of the garden for objects that the garden's own
// API server does not serve, such as Secrets.
package admissioncontroller

import (
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/apiserverfiles"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/internaldomain"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/kubeconfigreference"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/kubeconfigsecret"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/namespacedeletion"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/providerlabels"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/resourcesize"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedauthorizer/graph"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/seedrestriction"
	"github.com/trellis-k8s/trellis/pkg/admissioncontroller/updaterestriction"
	"github.com/trellis-k8s/trellis/pkg/apis/admissioncontroller/v1alpha1"
	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/webhookserver"
)

// Name is the name of the program and of its webhook configurations, as in Gardener.
const Name = "gardener-admission-controller"

// Readers read the garden.
type Readers struct {
	// Live reads from the API server, so that each decision knows what was written before.
	Live client.Reader
	// Cached reads from caches of the process. Only rules whose result is repaired later may use it.
	Cached client.Reader
	// Authorizer decides about requests of gardenlets.
	Authorizer http.Handler
	// MayRead reports whether an object is needed by a Seed, from the graph of the authorizer.
	MayRead func(object, seed graph.Vertex) bool
}

const (
	created = admissionregistrationv1.Create
	updated = admissionregistrationv1.Update
	deleted = admissionregistrationv1.Delete
)

// Table returns the webhooks, in alphabetical order of their names. Names, paths and rules are those of
// gardener-admission-controller. The sizes of objects are checked only if the configuration has limits.
func Table(readers Readers, config v1alpha1.ServerConfiguration) []webhookserver.Webhook {
	shoots, configMaps := rule("core.gardener.cloud", "v1beta1", "shoots", created, updated), rule("", "v1", "configmaps", updated)
	restrict := seedrestriction.Options{Reader: readers.Live, MayRead: readers.MayRead, Clock: clock.RealClock{}}
	rows := []webhookserver.Webhook{
		validates("audit-policies", apiserverfiles.AuditPolicy.Path, apiserverfiles.New(readers.Live, apiserverfiles.AuditPolicy),
			inProjects(), nil, shoots, configMaps),
		validates("authentication-configuration", apiserverfiles.Authentication.Path, apiserverfiles.New(readers.Live, apiserverfiles.Authentication),
			inProjects(), nil, shoots, configMaps),
		validates("authorization-configuration", apiserverfiles.Authorization.Path, apiserverfiles.New(readers.Live, apiserverfiles.Authorization),
			inProjects(), nil, shoots, configMaps),
		validates("internal-domain-secret", internaldomain.Path, internaldomain.New(readers.Live),
			nil, matching(constants.LabelGardenRole, constants.RoleInternalDomain), rule("", "v1", "secrets", created, updated, deleted)),
		authorizes("seed-authorizer", seedauthorizer.PathSeed, readers.Authorizer),
		restricts("seed-restriction", seedrestriction.PathSeed, seedrestriction.New(restrict), programsOfSeeds, writesOfSeeds()),
		authorizes("shoot-authorizer", seedauthorizer.PathShoot, readers.Authorizer),
		validates("shoot-kubeconfig-secret-ref", kubeconfigreference.Path, kubeconfigreference.New(readers.Live),
			inProjects(), nil, rule("", "v1", "secrets", updated)),
		restricts("shoot-restriction", seedrestriction.PathShoot, seedrestriction.NewForShoots(restrict), programsOfShoots, writesOfShoots()),
		providerLabels(readers.Cached),
		validates("update-restriction", updaterestriction.Path, updaterestriction.New(),
			nil, matching(constants.LabelUpdateRestriction, "true"), rule("", "v1", "secrets", created, updated, deleted),
			rule("", "v1", "configmaps", created, updated, deleted)),
		validates("validate-kubeconfig-secrets", kubeconfigsecret.Path, kubeconfigsecret.New(),
			inProjectsOfUsers(), nil, rule("", "v1", "secrets", created, updated)),
		validates("validate-namespace-deletion", namespacedeletion.Path, namespacedeletion.New(readers.Live),
			inProjects(), nil, rule("", "v1", "namespaces", deleted)),
	}
	if limits := config.ResourceAdmissionConfiguration; limits != nil && len(limits.Limits) > 0 {
		rows = append(rows, validates("validate-resource-size", resourcesize.Path, resourcesize.New(readers.Live, *limits),
			inProjectsOfUsers(), nil, limited(limits.Limits)...))
	}
	return rows
}

// providerLabels is the webhook that labels credentials.
func providerLabels(reader client.Reader) webhookserver.Webhook {
	row := validates("sync-provider-secret-labels", providerlabels.Path, providerlabels.New(reader), inProjects(), nil,
		rule("", "v1", "secrets", created, updated), rule("core.gardener.cloud", "v1beta1", "internalsecrets", created, updated))
	row.Kind = webhookserver.Mutating
	row.Reads = []client.Object{&corev1beta1.SecretBinding{}, &securityv1alpha1.CredentialsBinding{}}
	return row
}

// validates returns a validating webhook. nil selectors select all.
func validates(
	name, path string, handler admission.Handler, namespaces, objects *metav1.LabelSelector,
	rules ...admissionregistrationv1.RuleWithOperations,
) webhookserver.Webhook {
	return webhookserver.Webhook{
		Name: name, Path: path, Kind: webhookserver.Validating, Handler: &admission.Webhook{Handler: handler},
		Calls: &webhookserver.Calls{
			Rules: rules, NamespaceSelector: namespaces, ObjectSelector: objects, MatchPolicy: admissionregistrationv1.Equivalent,
			FailurePolicy: admissionregistrationv1.Fail, TimeoutSeconds: 10,
		},
	}
}

func rule(
	group, version, resource string, operations ...admissionregistrationv1.OperationType,
) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
		Scope: ptr.To(admissionregistrationv1.AllScopes),
	}}
}

// limited returns the rules for the resources with limits.
func limited(limits []v1alpha1.ResourceLimit) []admissionregistrationv1.RuleWithOperations {
	var rules []admissionregistrationv1.RuleWithOperations
	for _, limit := range limits {
		rules = append(rules, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{created, updated}, Rule: admissionregistrationv1.Rule{
				APIGroups: limit.APIGroups, APIVersions: limit.APIVersions, Resources: limit.Resources,
				Scope: ptr.To(admissionregistrationv1.AllScopes),
			},
		})
	}
	return rules
}

// matching selects objects by a label.
func matching(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// inProjects selects the namespaces of Projects.
func inProjects() *metav1.LabelSelector {
	return matching(constants.LabelGardenRole, constants.RoleProject)
}

// inProjectsOfUsers selects the namespaces of Projects, except for that of the garden's own programs.
func inProjectsOfUsers() *metav1.LabelSelector {
	selector := inProjects()
	selector.MatchExpressions = []metav1.LabelSelectorRequirement{
		{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"gardener"}},
	}
	return selector
}

// Configuration returns the description of the webhook configurations for a cluster.
func Configuration(reach webhookserver.ClientConfig) webhookserver.Configuration {
	return webhookserver.Configuration{
		Meta: metav1.ObjectMeta{Name: Name}, NameSuffix: ".gardener.cloud", Reach: reach, ReviewVersions: []string{"v1", "v1beta1"},
	}
}
