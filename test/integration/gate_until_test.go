package integration

import (
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// dependOn makes "app" depend on "base" only.
func (f *fixture) dependOn(until resourcesv1alpha1.DependencyUntil, what resourcesv1alpha1.DependencyFor) {
	f.Helper()
	app := f.read("app")
	f.change(app, func() {
		app.Spec.DependsOn = []resourcesv1alpha1.Dependency{{Name: "base", Until: until, For: what}}
	})
}

// setCondition sets a condition in the status of "base".
func (f *fixture) setCondition(conditionType resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus, reason string) {
	f.Helper()
	base := f.read("base")
	for i := range base.Status.Conditions {
		if condition := &base.Status.Conditions[i]; condition.Type == conditionType {
			condition.Status, condition.Reason = status, reason
		}
	}
	must(f, f.client.Status().Update(f.ctx, base))
}

// TestDependsOnUntil: a change waits until its dependency has reached the given state, and no longer.
func TestDependsOnUntil(t *testing.T) {
	for name, test := range map[string]struct {
		until resourcesv1alpha1.DependencyUntil
		state func(*fixture)
		says  string
	}{
		"applied, unhealthy": {resourcesv1alpha1.UntilApplied, func(f *fixture) {
			f.setCondition(resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionFalse, "PodUnhealthy")
		}, ""},
		"healthy, rolling out": {resourcesv1alpha1.UntilHealthy, func(f *fixture) {
			f.setCondition(resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionTrue, "DeploymentProgressing")
		}, ""},
		"rolled out, rolling out": {resourcesv1alpha1.UntilRolledOut, func(f *fixture) {
			f.setCondition(resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionTrue, "DeploymentProgressing")
		}, "/base is not rolled out: DeploymentProgressing"},
		"healthy, found to be unhealthy": {resourcesv1alpha1.UntilHealthy, func(f *fixture) {
			base := f.read("base")
			base.Status.FoundUnhealthy = "DeploymentUnhealthy"
			must(f, f.client.Status().Update(f.ctx, base))
		}, "/base is not healthy: DeploymentUnhealthy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.gated(f.configMap("one", "1"))
			f.dependOn(test.until, "")
			f.reconcileOK("app")
			test.state(f)
			f.secret("app", "objects.yaml", f.configMap("one", "2"))
			if test.says == "" {
				f.reconcileOK("app")
				f.wantConfigMap("one", "2")
				return
			}
			f.waits(resourcesv1alpha1.ReasonDependencyNotReady, test.says)
			f.wantConfigMap("one", "1")
		})
	}
}

// TestDependsOnForCreation: the first revision waits, later ones do not, also after a restart.
func TestDependsOnForCreation(t *testing.T) {
	f := newFixture(t)
	f.manage("app", f.configMap("one", "1"))
	f.dependOn("", resourcesv1alpha1.ForCreation)
	f.waits(resourcesv1alpha1.ReasonDependencyNotReady, "/base does not exist")
	f.wantNoConfigMap("one")
	f.manage("base", f.configMap("base", "1"))
	f.reconcileOK("base")
	f.reconcileOK("app")
	must(t, f.client.Delete(f.ctx, f.read("base")))
	f.restart()
	f.secret("app", "objects.yaml", f.configMap("one", "2")+"---\n"+f.configMap("two", "1"))
	f.reconcileOK("app")
	f.wantConfigMap("one", "2")
	f.wantConfigMap("two", "1")
}

// TestDependsOnValidation: the API server rejects unknown values.
func TestDependsOnValidation(t *testing.T) {
	f := newFixture(t)
	app := f.manage("app", f.configMap("one", "1"))
	for name, dependency := range map[string]resourcesv1alpha1.Dependency{
		"until": {Name: "base", Until: "Soon"}, "for": {Name: "base", For: "Fun"},
	} {
		changed := app.DeepCopy()
		changed.Spec.DependsOn = []resourcesv1alpha1.Dependency{dependency}
		if err := f.client.Update(f.ctx, changed); err == nil {
			t.Errorf("%s: an unknown value is accepted", name)
		}
	}
}
