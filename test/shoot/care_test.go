package shoot

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	gardenletv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/gardenlet/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/controllermanager/controller/shootstatuslabel"
	"github.com/trellis-k8s/trellis/pkg/extension/heartbeat"
	shootflow "github.com/trellis-k8s/trellis/pkg/shoot"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/kit/fleet"
)

// Durations in the configuration of TestCare, measured with the test's clock.
const (
	careThreshold = time.Minute
	careStale     = 2 * time.Minute
)

// ahead is a clock that the test can advance ahead of the real clock.
type ahead struct{ by atomic.Int64 }

func (a *ahead) Now() time.Time                   { return time.Now().Add(time.Duration(a.by.Load())) }
func (a *ahead) Since(at time.Time) time.Duration { return a.Now().Sub(at) }
func (a *ahead) step(by time.Duration)            { a.by.Add(int64(by)) }

// TestCare checks the conditions and constraints of a Shoot while components fail and recover. The steps depend on each other.
func TestCare(t *testing.T) {
	w := newWorld(t)
	c := &caring{world: w, clock: &ahead{}}
	w.tune = c.tune
	kit.StartManager(t, w.managerOfSeed(), nil, seedManager)
	w.etcdOperator()
	c.runLabels()
	toGarden, toSeed, stop := w.gardenlet()
	w.declare()
	w.startServer()
	w.startManager()
	w.eventually(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded, "finished")
	c.checkHealthy()
	c.checkRest(toGarden, toSeed)

	c.breakComponent()
	c.contribute()
	c.checkConversion()
	c.addWebhook()
	quiet(t, toGarden, toSeed)
	stop()

	c.remediates = true
	toGarden, toSeed, stop = w.gardenlet()
	c.checkRemediation()
	c.checkStalePod()
	c.checkRest(toGarden, toSeed)
	stop()
}

// caring is a world with a clock that the test advances.
type caring struct {
	*world
	clock *ahead
	// remediates enables the remediation of webhooks.
	remediates bool
}

// tune sets a short check interval for Shoots, because all durations are measured with the test's clock.
func (c *caring) tune(options *shootflow.Options) {
	options.Clock = c.clock
	config := options.Config.Controllers.ShootCare
	config.SyncPeriod = &metav1.Duration{Duration: time.Second}
	config.ConditionThresholds = []gardenletv1alpha1.ConditionThreshold{{Type: "ControlPlaneHealthy", Duration: metav1.Duration{Duration: careThreshold}}}
	config.StaleExtensionHealthChecks = &gardenletv1alpha1.StaleExtensionHealthChecks{Enabled: true, Threshold: &metav1.Duration{Duration: careStale}}
	config.WebhookRemediatorEnabled = ptr.To(c.remediates)
}

// runLabels runs the controller of the status label until the test ends.
func (c *caring) runLabels() {
	c.Helper()
	fleet.RunControllers(c, c.gardens.Config(), kit.ManagerOptions(c.scheme), shootstatuslabel.Controller())
}

// eventuallyIs waits until a condition or constraint has a status, reason and text, and the Shoot has a value of the status
// label.
func (c *caring) eventuallyIs(kind corev1beta1.ConditionType, status corev1beta1.ConditionStatus, reason, text, label string) {
	c.Helper()
	kit.EventuallyWithin(c, 2*kit.WaitTimeout, fmt.Sprintf("%s is %s %s, and the label is %s", kind, status, reason, label), func() string {
		shoot := c.get()
		for _, condition := range slices.Concat(shoot.Status.Conditions, shoot.Status.Constraints) {
			if condition.Type == kind && condition.Status == status && condition.Reason == reason && strings.Contains(condition.Message, text) &&
				shoot.Labels[constants.LabelShootStatus] == label {
				return ""
			}
		}
		return fmt.Sprintf("label %s, %+v, %+v %+v", shoot.Labels[constants.LabelShootStatus], shoot.Status.LastOperation, shoot.Status.Conditions, shoot.Status.Constraints)
	})
}

// checkHealthy waits until everything is healthy and there are no other conditions and constraints.
func (c *caring) checkHealthy() {
	c.Helper()
	kit.EventuallyWithin(c, 2*kit.WaitTimeout, "the Shoot is healthy", func() string {
		shoot := c.get()
		all := slices.Concat(shoot.Status.Conditions, shoot.Status.Constraints)
		if len(all) != 6 || shoot.Labels[constants.LabelShootStatus] != "healthy" ||
			slices.ContainsFunc(all, func(condition corev1beta1.Condition) bool { return condition.Status != corev1beta1.ConditionTrue }) {
			return fmt.Sprintf("label %s, %+v\n%s", shoot.Labels[constants.LabelShootStatus], all, c.bundles())
		}
		return ""
	})
}

// checkRest checks that gardenlet sends only watches and the health checks of the API server if nothing changes.
func (c *caring) checkRest(toGarden, toSeed *kit.Requests) {
	c.Helper()
	quiet(c.T, toGarden, toSeed)
	toGarden.Forget()
	toSeed.Forget()
	before := c.requestsToCluster()
	quiet(c.T, toGarden, toSeed)
	if sent := slices.Concat(toGarden.All(), toSeed.All()); len(sent) > 0 {
		c.Errorf("requests at rest: %v", sent)
	}
	if after := c.requestsToCluster(); after != before {
		c.Errorf("requests to the cluster at rest: before\n%s\nafter\n%s", before, after)
	}
}

// requestsToCluster counts the requests of gardenlet that the API server of the Shoot has handled, without watches.
func (c *caring) requestsToCluster() string {
	c.Helper()
	server, err := discovery.NewDiscoveryClientForConfig(c.adminConfig())
	kit.Must(c, err)
	text, err := server.RESTClient().Get().AbsPath("/metrics").Do(c.Context()).Raw()
	kit.Must(c, err)
	var lines []string
	for line := range strings.SplitSeq(string(text), "\n") {
		about := slices.ContainsFunc([]string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "customresourcedefinitions", "pods"}, func(resource string) bool {
			return strings.Contains(line, `resource="`+resource+`"`)
		})
		if about && strings.HasPrefix(line, "apiserver_request_total{") && !strings.Contains(line, `verb="WATCH"`) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// breakComponent checks that a failing component is reported as Progressing, and as False after the threshold.
func (c *caring) breakComponent() {
	c.Helper()
	broken := &resourcesv1alpha1.ManagedResource{
		ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: "extension-broken"},
		Spec:       resourcesv1alpha1.ManagedResourceSpec{Class: ptr.To("other"), SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: "none"}}},
	}
	c.create(c.seed, broken)
	kit.Must(c, c.seed.Get(c.Context(), client.ObjectKeyFromObject(broken), broken))
	broken.Status.ObservedGeneration = broken.Generation
	for kind, status := range map[resourcesv1alpha1.ConditionType]resourcesv1alpha1.ConditionStatus{
		resourcesv1alpha1.ResourcesApplied: "True", resourcesv1alpha1.ResourcesHealthy: "False", resourcesv1alpha1.ResourcesProgressing: "False",
	} {
		broken.Status.Conditions = append(broken.Status.Conditions, resourcesv1alpha1.Condition{
			Type: kind, Status: status, Reason: "DeploymentUnhealthy", Message: "it has no Pods", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		})
	}
	kit.WriteStatus(c, c.seed, broken)
	c.eventuallyIs("ControlPlaneHealthy", "Progressing", "DeploymentUnhealthy", "extension-broken: it has no Pods", "progressing")
	c.clock.step(careThreshold)
	c.eventuallyIs("ControlPlaneHealthy", "False", "DeploymentUnhealthy", "extension-broken: it has no Pods", "unhealthy")
	kit.Must(c, c.seed.Delete(c.Context(), broken))
	c.checkHealthy()
}

// contribute checks that an extension's reports count for the condition of their type while the extension is alive.
func (c *caring) contribute() {
	c.Helper()
	const kind, name = "shoot-example", "example-1"
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "example"}}
	registration.Spec.Resources = []corev1beta1.ControllerResource{{Kind: "Extension", Type: kind}}
	installation := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: name}}
	installation.Spec.RegistrationRef, installation.Spec.SeedRef = corev1.ObjectReference{Name: "example"}, &corev1.ObjectReference{Name: seedName}
	c.create(c.garden, registration)
	c.create(c.garden, installation)
	c.create(c.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.PrefixExtensionNamespace + name}})
	extension := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: technical, Name: "example"}}
	extension.Spec.Type = kind
	c.create(c.seed, extension)
	report := func(status corev1beta1.ConditionStatus) {
		kit.Must(c, c.seed.Get(c.Context(), client.ObjectKeyFromObject(extension), extension))
		extension.Status.Conditions = []corev1beta1.Condition{{
			Type: corev1beta1.ShootSystemComponentsHealthy, Status: status, Reason: "HealthCheck", Message: "the quota is used up", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
			Codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraQuotaExceeded},
		}}
		kit.WriteStatus(c, c.seed, extension)
	}
	report("True")
	c.eventuallyIs("SystemComponentsHealthy", "Unknown", "ExtensionOutdatedHealthCheckReport", "the extension has never renewed its heartbeat", "unknown")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: constants.PrefixExtensionNamespace + name, Name: heartbeat.LeaseName}}
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(c.clock.Now()))
	c.create(c.seed, lease)
	c.checkHealthy()
	report("False")
	c.eventuallyIs("SystemComponentsHealthy", "False", "ExtensionUnhealthyReport", "the quota is used up", "unhealthy")
	report("True")
	c.checkHealthy()
	c.clock.step(careStale)
	c.eventuallyIs("SystemComponentsHealthy", "Unknown", "ExtensionOutdatedHealthCheckReport", "the extension has not renewed its heartbeat since", "unknown")
	kit.Change(c, c.seed, lease, func() { lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(c.clock.Now())) })
	c.checkHealthy()
	kit.Must(c, c.seed.Delete(c.Context(), extension))
}

// checkConversion checks the constraint for a definition with two stored versions and a conversion webhook.
func (c *caring) checkConversion() {
	c.Helper()
	admin := c.admin()
	version := func(name string, stored bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: stored, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
		}}
	}
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.org"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.org", Scope: apiextensionsv1.ClusterScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true), version("v2", false)},
		Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: ptr.To("https://convert.example.org")},
		}},
	}}
	kit.Must(c, admin.Create(c.Context(), definition))
	kit.Change(c, admin, definition, func() { definition.Spec.Versions[0].Storage, definition.Spec.Versions[1].Storage = false, true })
	c.eventuallyIs("CRDsWithProblematicConversionWebhooks", "False", "CRDsWithProblematicConversionWebhooks", "things.example.org", "healthy")
	kit.Must(c, admin.Delete(c.Context(), definition))
	c.checkHealthy()
}

// addWebhook checks that a webhook that may prevent the cluster from waking up appears in both constraints and is not changed.
func (c *caring) addWebhook() {
	c.Helper()
	kit.Must(c, c.admin().Create(c.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "policies"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "pods.example.org", AdmissionReviewVersions: []string{"v1"}, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), TimeoutSeconds: ptr.To[int32](30),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://policies.example.org")},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}))
	const text = "ValidatingWebhookConfiguration policies, webhook pods.example.org: it is called for pods, with failurePolicy Fail and timeoutSeconds 30"
	c.eventuallyIs("HibernationPossible", "False", "ProblematicWebhooks", text, "healthy")
	c.eventuallyIs("MaintenancePreconditionsSatisfied", "False", "ProblematicWebhooks", text, "healthy")
}

// checkRemediation checks that an enabled remediation changes the webhook and reports it until the user corrects the webhook.
func (c *caring) checkRemediation() {
	c.Helper()
	c.eventuallyIs("HibernationPossible", "False", "RemediatedWebhooks", "ValidatingWebhookConfiguration policies", "healthy")
	admin, policies := c.admin(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "policies"}}
	kit.Must(c, admin.Get(c.Context(), client.ObjectKeyFromObject(policies), policies))
	webhook := policies.Webhooks[0]
	if *webhook.TimeoutSeconds != 15 || *webhook.FailurePolicy != admissionregistrationv1.Fail || len(webhook.NamespaceSelector.MatchExpressions) != 2 ||
		!strings.Contains(policies.Annotations[constants.AnnotationGardenerWarning], "added to namespaceSelector: gardener.cloud/purpose notin (kube-system)") {
		c.Errorf("the webhook is %+v, annotated %v", webhook, policies.Annotations)
	}
	kit.Change(c, admin, policies, func() { delete(policies.Annotations, constants.AnnotationGardenerWarning) })
	c.checkHealthy()
}

// checkStalePod checks that an evicted Pod in kube-system is deleted.
func (c *caring) checkStalePod() {
	c.Helper()
	admin := c.admin()
	c.create(admin, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "default"}})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "evicted"}, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "a", Image: "example.org/a"}},
	}}
	kit.Must(c, admin.Create(c.Context(), pod))
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	kit.WriteStatus(c, admin, pod)
	kit.Eventually(c, "the evicted Pod is deleted", func() string {
		if err := admin.Get(c.Context(), client.ObjectKeyFromObject(pod), pod); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprint("it still exists: ", err)
		}
		return ""
	})
}
