package care

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	druidv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/druid/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// configured adds a configuration with a webhook for Pods.
func configured(policy admissionregistrationv1.FailurePolicyType, change ...func(*Configuration)) func(*Observation) {
	configuration := Configuration{Kind: "ValidatingWebhookConfiguration", Name: "policies", Webhooks: []Webhook{{
		Name: "pods.example.org", FailurePolicy: &policy, TimeoutSeconds: ptr.To[int32](10), Rules: rules("", "pods"),
	}}}
	for _, each := range change {
		each(&configuration)
	}
	return func(o *Observation) { o.Cluster.Webhooks = append(o.Cluster.Webhooks, configuration) }
}

func TestConstraints(t *testing.T) {
	const (
		hibernation = "HibernationPossible"
		maintenance = "MaintenancePreconditionsSatisfied"
	)
	both := func(text string) []string { return []string{hibernation + " " + text, maintenance + " " + text} }
	hibernated := func(o *Observation) { o.Hibernated, o.Asked, o.Cluster = true, false, nil }
	down := func(o *Observation) { o.Asked, o.Cluster = false, nil }
	unread := func(o *Observation) { o.Cluster = nil }
	expiring := func(in time.Duration) func(*Observation) {
		return func(o *Observation) { o.Authorities["ca-12345"] = now.Add(in) }
	}
	converted := func(o *Observation) { o.Cluster.Converted = []string{"things.example.org"} }
	ignored := func(o *Observation) {
		o.Components[1].Annotations = map[string]string{resourcesv1alpha1.AnnotationIgnore: "true"}
	}
	backup := func(b *Backup) func(*Observation) { return func(o *Observation) { o.Backup = b } }
	before := func(kinds ...string) func(*Observation) {
		return func(o *Observation) {
			for _, kind := range kinds {
				o.Shoot.Status.Constraints = append(o.Shoot.Status.Constraints, corev1beta1.Condition{Type: corev1beta1.ConditionType(kind), Status: "False", Reason: "Before"})
			}
		}
	}
	remediated := func(c *Configuration) {
		c.Annotations = map[string]string{constants.AnnotationGardenerWarning: "changed"}
	}
	for name, test := range map[string]struct {
		change []func(*Observation)
		want   []string
		next   time.Time
	}{
		"well":                          {nil, both("True NoProblematicWebhooks"), time.Time{}},
		"a webhook":                     {[]func(*Observation){configured("Fail")}, both("False ProblematicWebhooks"), time.Time{}},
		"a harmless one":                {[]func(*Observation){configured("Ignore")}, both("True NoProblematicWebhooks"), time.Time{}},
		"a remediated one":              {[]func(*Observation){configured("Ignore", remediated)}, both("False RemediatedWebhooks"), time.Time{}},
		"remediated, and bad again":     {[]func(*Observation){configured("Fail", remediated)}, both("False ProblematicWebhooks"), time.Time{}},
		"of gardener":                   {[]func(*Observation){configured("Fail", func(c *Configuration) { c.Labels = map[string]string{resourcesv1alpha1.LabelManagedBy: "gardener"} })}, both("True NoProblematicWebhooks"), time.Time{}},
		"of the resource-manager":       {[]func(*Observation){configured("Fail", func(c *Configuration) { c.Labels = map[string]string{"app": "gardener-resource-manager"} })}, both("True NoProblematicWebhooks"), time.Time{}},
		"hibernated":                    {[]func(*Observation){hibernated}, both("True ConstraintNotChecked"), time.Time{}},
		"not running":                   {[]func(*Observation){down}, both("False ConstraintNotChecked"), time.Time{}},
		"not read yet":                  {[]func(*Observation){unread}, both("Unknown ConditionInitialized"), time.Time{}},
		"not read again":                {[]func(*Observation){unread, before(hibernation, maintenance)}, both("False Before"), time.Time{}},
		"an authority":                  {[]func(*Observation){expiring(364 * 24 * time.Hour)}, append(both("True NoProblematicWebhooks"), "CACertificateValiditiesAcceptable False ExpiringCACertificates"), time.Time{}},
		"an authority later":            {[]func(*Observation){expiring(366 * 24 * time.Hour)}, both("True NoProblematicWebhooks"), now.Add(24 * time.Hour)},
		"an authority while hibernated": {[]func(*Observation){expiring(time.Hour), hibernated}, both("True ConstraintNotChecked"), time.Time{}},
		"conversion":                    {[]func(*Observation){converted}, append(both("True NoProblematicWebhooks"), "CRDsWithProblematicConversionWebhooks False CRDsWithProblematicConversionWebhooks"), time.Time{}},
		"conversion not known":          {[]func(*Observation){before(hibernation, maintenance, "CRDsWithProblematicConversionWebhooks"), unread}, append(both("False Before"), "CRDsWithProblematicConversionWebhooks False Before"), time.Time{}},
		"conversion settled":            {[]func(*Observation){before("CRDsWithProblematicConversionWebhooks")}, both("True NoProblematicWebhooks"), time.Time{}},
		"ignored":                       {[]func(*Observation){ignored}, append(both("True NoProblematicWebhooks"), "HasIgnoredManagedResources False ManagedResourcesIgnored"), time.Time{}},
		"ignored while hibernated":      {[]func(*Observation){ignored, hibernated}, append(both("True ConstraintNotChecked"), "HasIgnoredManagedResources False ManagedResourcesIgnored"), time.Time{}},
		"ignored no longer":             {[]func(*Observation){before("HasIgnoredManagedResources")}, both("True NoProblematicWebhooks"), time.Time{}},
		"backups are overdue":           {[]func(*Observation){backup(&Backup{Declared: true, Condition: druidv1alpha1.Condition{Type: "BackupReady", Status: "False", Reason: "BackupFailed"}})}, append(both("True NoProblematicWebhooks"), "BackupReady False BackupFailed"), time.Time{}},
		"backups are not configured":    {[]func(*Observation){backup(&Backup{Declared: true})}, append(both("True NoProblematicWebhooks"), "BackupReady False BackupsNotConfigured"), time.Time{}},
		"backups are taken":             {[]func(*Observation){before("BackupReady"), backup(&Backup{Declared: true, Condition: druidv1alpha1.Condition{Type: "BackupReady", Status: "True"}})}, both("True NoProblematicWebhooks"), time.Time{}},
		"no backup is declared":         {[]func(*Observation){before("BackupReady"), backup(&Backup{})}, both("True NoProblematicWebhooks"), time.Time{}},
		"the Seed is not known":         {[]func(*Observation){before("BackupReady")}, append([]string{"BackupReady False Before"}, both("True NoProblematicWebhooks")...), time.Time{}},
		"of other writers":              {[]func(*Observation){before("ReadyForMigration")}, append([]string{"ReadyForMigration False Before"}, both("True NoProblematicWebhooks")...), time.Time{}},
	} {
		constraints, next := healthy(test.change...).Constraints()
		var got []string
		for _, each := range constraints {
			got = append(got, fmt.Sprintf("%s %s %s", each.Type, each.Status, each.Reason))
		}
		if !slices.Equal(got, test.want) || !next.Equal(test.next) {
			t.Errorf("%s: %q, next %s, want %q, %s", name, got, next, test.want, test.next)
		}
	}
}

// TestConstraintSaysWhich checks that a constraint names the webhooks and the reasons, with a code, for at most ten webhooks.
func TestConstraintSaysWhich(t *testing.T) {
	constraints, _ := healthy(configured("Fail")).Constraints()
	const want = "ValidatingWebhookConfiguration policies, webhook pods.example.org: it is called for pods, with failurePolicy Fail and timeoutSeconds 10"
	if got := constraints[0]; !strings.HasSuffix(got.Message, want) || !slices.Equal(got.Codes, []corev1beta1.ErrorCode{corev1beta1.ErrorProblematicWebhook}) {
		t.Errorf("%+v", got)
	}
	var many []func(*Observation)
	for range 12 {
		many = append(many, configured("Fail"))
	}
	constraints, _ = healthy(many...).Constraints()
	if got := constraints[1].Message; strings.Count(got, "pods.example.org") != 10 || !strings.HasSuffix(got, "; and 2 more") {
		t.Error(got)
	}
}
