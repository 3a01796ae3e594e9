package health

import (
	"encoding/json"
	"strings"
	"testing"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

type check = resourcesv1alpha1.HealthCheck

// setChecks replaces the checks of a ManagedResource.
func (f *fixture) setChecks(name string, checks ...check) {
	f.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"healthChecks": checks}})
	must(f, err)
	f.change(name, string(patch))
}

// TestCustomChecks checks that users can define when objects are healthy.
func TestCustomChecks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, test := range map[string]func(*fixture){
		"of a ConfigMap": (*fixture).checkConfigMap, "of a Deployment": (*fixture).checkDeployment, "of a custom resource": (*fixture).checkWidget,
		"that are wrong": (*fixture).checkWrongly, "of two ManagedResources": (*fixture).checkTwice,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(f.in(t))
		})
	}
}

func (f *fixture) checkConfigMap() {
	f.secret(managed, configMap)
	f.managedResource(managed, check{Kind: "ConfigMap", Healthy: `object.data.key == "2"`, Message: `"key is " + object.data.key`})
	f.eventuallySays(managed, unhealthy("ConfigMapUnhealthy", "is unhealthy: key is 1"), isRolledOut)
	f.update(managed, strings.Replace(configMap, `"1"`, `"2"`, 1))
	f.eventuallySays(managed, isHealthy, isRolledOut)
	f.setChecks(managed, check{Kind: "ConfigMap", Healthy: `object.data.key == "2"`, Progressing: `metadata.name == "app"`, Message: `"always"`})
	f.eventuallySays(managed, isHealthy, progressing("ConfigMapProgressing", "always"))
	f.setChecks(managed)
	f.eventuallySays(managed, isHealthy, isRolledOut)
}

func (f *fixture) checkDeployment() {
	f.manage(managed, workload("Deployment", "replicas: 1", nowhere))
	f.eventuallySays(managed, unhealthy("DeploymentUnhealthy", "MinimumReplicasUnavailable"), progressing("DeploymentProgressing", ""))
	f.setChecks(managed, check{Group: "apps", Kind: "Deployment", Healthy: "status.observedGeneration == metadata.generation"})
	f.eventuallySays(managed, isHealthy, isRolledOut)
	f.setChecks(managed, check{Group: "apps", Kind: "Deployment", Failed: "status.unavailableReplicas > 0", Message: `"without " + string(status.unavailableReplicas)`})
	f.eventuallySays(managed, unhealthy("DeploymentUnhealthy", "is unhealthy: without 1"), isRolledOut)
	f.setChecks(managed)
	f.eventuallySays(managed, unhealthy("DeploymentUnhealthy", "MinimumReplicasUnavailable"), progressing("DeploymentProgressing", ""))
}

func (f *fixture) checkWidget() {
	f.secret(managed, custom(widget, "app", "size: 3"))
	f.managedResource(managed, check{Group: "example.org", Kind: "Widget", Healthy: "status.size == spec.size", Progressing: "status.size < spec.size"})
	f.eventuallySays(managed, unhealthy("WidgetUnhealthy", "has no status yet"), progressing("WidgetProgressing", "has no status yet"))
	f.setStatus(widget, "app", `{"size": 2}`)
	f.eventuallySays(managed, unhealthy("WidgetUnhealthy", "not healthy: status.size == spec.size"), progressing("WidgetProgressing", "status.size < spec.size"))
	f.setStatus(widget, "app", `{"size": 3}`)
	f.eventuallySays(managed, isHealthy, isRolledOut)
}

func (f *fixture) checkWrongly() {
	f.manage(managed, configMap)
	f.eventuallySays(managed, isHealthy, isRolledOut)
	of := func(expression string) check { return check{Kind: "ConfigMap", Healthy: expression} }
	for _, wrong := range []struct {
		check check
		text  string
	}{
		{of("object.data.key =="), "healthChecks[0].healthy: line 1, column"},
		{of("nobody == 1"), "undeclared reference to 'nobody'"},
		{of(`"yes"`), "yields string, but must yield bool"},
		{of("object.data.key"), "yields string, but must yield bool"}, // found only by the evaluation
		{of("lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, a + b + c >= 0)))"), "runs too long"},
	} {
		f.setChecks(managed, wrong.check)
		f.eventuallySays(managed, unhealthy(resourcesv1alpha1.ReasonHealthCheckError, wrong.text), want{})
	}
	f.setChecks(managed)
	f.eventuallySays(managed, isHealthy, isRolledOut)
}

func (f *fixture) checkTwice() {
	documents := map[string]string{}
	for _, name := range []string{"one", "two", "three"} {
		documents[name] = strings.Replace(configMap, "name: app", "name: "+name, 1)
		f.secret(name, documents[name])
	}
	f.managedResource("one", check{Kind: "ConfigMap", Healthy: `object.data.key == "1"`})
	f.managedResource("two", check{Kind: "ConfigMap", Healthy: `object.data.key == "2"`})
	f.managedResource("three")
	f.eventuallySays("one", isHealthy, isRolledOut)
	f.eventuallySays("two", unhealthy("ConfigMapUnhealthy", `object.data.key == "2"`), isRolledOut)
	f.eventuallySays("three", isHealthy, isRolledOut)
	f.setChecks("two")
	f.eventuallySays("two", isHealthy, isRolledOut)
	f.setChecks("one", check{Kind: "ConfigMap", Healthy: `object.data.key == "3"`})
	f.eventuallySays("one", unhealthy("ConfigMapUnhealthy", `object.data.key == "3"`), isRolledOut)
	f.eventuallySays("two", isHealthy, isRolledOut)
	f.eventuallySays("three", isHealthy, isRolledOut)
}
