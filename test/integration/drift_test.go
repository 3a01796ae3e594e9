package integration

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// TestEditAndAdditionArePutBackTogether: a client changes a field and adds a container. The correction of both is one
// rollout.
func TestEditAndAdditionArePutBackTogether(t *testing.T) {
	for _, manager := range []string{"kubectl-edit", "Mozilla"} {
		t.Run(manager, func(t *testing.T) {
			f := newFixture(t)
			f.manage("set", f.web(""))
			f.reconcileOK("set")
			wanted := f.liveDeployment()
			edited := wanted.DeepCopy()
			containers := &edited.Spec.Template.Spec.Containers
			(*containers)[0].Image = "example.org/other"
			*containers = append(*containers, corev1.Container{Name: "more", Image: "example.org/more"})
			must(t, f.client.Patch(f.ctx, edited, client.MergeFrom(wanted), fieldOwner(manager)))
			f.reconcileOK("set")
			after := f.liveDeployment()
			if len(after.Spec.Template.Spec.Containers) != 1 || after.Spec.Template.Spec.Containers[0].Image != "example.org/web:1" {
				t.Errorf("the containers are %+v", after.Spec.Template.Spec.Containers)
			}
			if after.Generation != edited.Generation+1 {
				t.Errorf("the generation changed from %d to %d: want one change of the spec", edited.Generation, after.Generation)
			}
		})
	}
}

// TestClientThatAppliesTheSame: a client repeatedly applies the values of the manifest. That is not drift.
func TestClientThatAppliesTheSame(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.web(""))
	f.reconcileOK("set")
	for range 2 {
		f.serverSideApply(f.web(""), "some-tool")
		f.requests.writes()
		f.reconcileOK("set")
		if writes := f.requests.writes(); len(writes) > 0 {
			t.Errorf("the reconcile writes %v", writes)
		}
	}
	f.secret("set", "objects.yaml", f.web("        args: [x]\n"))
	f.reconcileOK("set")
	f.secret("set", "objects.yaml", f.web(""))
	f.reconcileOK("set")
	if args := f.liveDeployment().Spec.Template.Spec.Containers[0].Args; len(args) > 0 {
		t.Errorf("the args are %v", args)
	}
}

// TestFieldInCommonThatLeavesTheManifest: the field is removed, although a client owns it, too.
func TestFieldInCommonThatLeavesTheManifest(t *testing.T) {
	f := newFixture(t)
	f.manage("set", f.web(obsolete))
	f.reconcileOK("set")
	f.serverSideApply(f.web(obsolete), "some-tool")
	f.secret("set", "objects.yaml", f.web(""))
	f.reconcileOK("set")
	if env := f.liveDeployment().Spec.Template.Spec.Containers[0].Env; len(env) > 0 {
		t.Errorf("the env is %v", env)
	}
}

// TestLoadBalancerIPGoesWithItsType: an address that kubectl set stays while the Service has a load balancer.
func TestLoadBalancerIPGoesWithItsType(t *testing.T) {
	f := newFixture(t)
	manifest := func(serviceType string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: " + f.namespace + "}\n" +
			"spec: {type: " + serviceType + ", ports: [{name: http, port: 80, protocol: TCP}]}\n"
	}
	t.Cleanup(f.freeNodePort)
	f.manage("set", manifest("LoadBalancer"))
	f.reconcileOK("set")
	f.patch(manifest("LoadBalancer"), "kubectl-edit", `{"spec":{"loadBalancerIP":"192.0.2.1"}}`)
	for _, step := range []struct{ serviceType, want string }{{"LoadBalancer", "192.0.2.1"}, {"NodePort", "192.0.2.1"}, {"ClusterIP", ""}} {
		f.secret("set", "objects.yaml", manifest(step.serviceType))
		f.reconcileOK("set")
		service := &corev1.Service{}
		must(t, f.client.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: "web"}, service))
		if service.Spec.LoadBalancerIP != step.want {
			t.Errorf("%s: loadBalancerIP is %q, want %q", step.serviceType, service.Spec.LoadBalancerIP, step.want)
		}
	}
}

// TestTakesOverUnionMemberOfAClient takes over an object that a client created with a different union member than the
// manifest's.
func TestTakesOverUnionMemberOfAClient(t *testing.T) {
	f := newFixture(t)
	budget := func(field string) string {
		return "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: x, namespace: " + f.namespace + "}\nspec: {" + field + ": 1, selector: {matchLabels: {app: x}}}\n"
	}
	before := f.createObject(budget("minAvailable"), "Mozilla")
	f.manage("set", budget("maxUnavailable"))
	f.reconcileOK("set")
	after := f.object(budget("maxUnavailable"))
	spec, _ := after.Object["spec"].(map[string]any)
	if spec["minAvailable"] != nil || spec["maxUnavailable"] != int64(1) || after.GetUID() != before.GetUID() {
		t.Errorf("the object is %v", after.Object)
	}
}

// TestRenamedPredecessorIsTakenOver: a resource-manager whose binary has a different name applied the object. Its
// labels are removed with those of the manifest.
func TestRenamedPredecessorIsTakenOver(t *testing.T) {
	for name, origin := range map[string]string{"same origin": "", "former cluster identity": "garden:"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			deployment := toObject(f, f.web(obsolete), &appsv1.Deployment{})
			deployment.Labels["obsolete"] = "x"
			deployment.Annotations = map[string]string{resourcesv1alpha1.AnnotationOrigin: origin + f.namespace + "/set"}
			must(t, f.client.Create(f.ctx, deployment, fieldOwner("shop-manager")))
			f.manage("set", f.web(""))
			f.reconcileOK("set")
			after := f.liveDeployment()
			if after.Labels["obsolete"] != "" || len(after.Spec.Template.Spec.Containers[0].Env) > 0 || after.UID != deployment.UID {
				t.Errorf("the object is %+v", after)
			}
			wantContains(t, f.event(), "TakenOver", "shop-manager", "web")
		})
	}
}

// TestBinaryKeepsFieldsOfConfiguredManagers: two clients add keys to ConfigMaps, and the configuration names one of
// them. Afterwards a manifest gets an unknown field.
func TestBinaryKeepsFieldsOfConfiguredManagers(t *testing.T) {
	f := newFixture(t)
	f.start("controllers: {managedResource: {syncPeriod: 1h, keepFieldsOf: [\"shop-*\"], fieldValidation: Strict}}\n" + noElection)
	f.manage("set", f.configMap("kept", "1"), f.configMap("removed", "1"))
	f.eventuallySucceeded("set")
	f.patch(f.configMap("kept", "1"), "shop-operator", `{"data":{"more":"x"}}`)
	f.patch(f.configMap("removed", "1"), "Mozilla", `{"data":{"more":"x"}}`)
	f.eventually("the addition is removed", func() bool { return f.liveConfigMap("removed").Data["more"] == "" })
	if f.liveConfigMap("kept").Data["more"] != "x" {
		t.Error("the addition of a manager that the configuration names is removed")
	}
	f.secret("set", "objects.yaml", f.configMap("kept", "1")+"typo: {}\n")
	f.eventuallyApplied("set", resourcesv1alpha1.ConditionFalse, resourcesv1alpha1.ReasonApplyFailed)
}
