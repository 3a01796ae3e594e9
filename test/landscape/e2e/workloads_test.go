package e2e

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// workloads are the manifests that a ManagedResource applies, each in its own namespace.
var workloads = map[string]func(*cluster){
	"rolling update":             (*cluster).rollingUpdate,
	"an image that is not there": (*cluster).missingImage,
	"a container that crashes":   (*cluster).crashLoop,
	"Job":                        (*cluster).job,
	"DaemonSet":                  (*cluster).daemonSet,
	"claim":                      (*cluster).claim,
	"load balancer":              (*cluster).loadBalancer,
}

// manage creates or changes a ManagedResource with manifests. Its objects are created in the namespace of the test.
func (c *cluster) manage(name, secretSuffix, manifests string) {
	c.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name + secretSuffix, Namespace: c.namespace}, StringData: map[string]string{
		"objects.yaml": strings.ReplaceAll(manifests, "metadata: {name:", "metadata: {namespace: "+c.namespace+", name:"),
	}}
	must(c.t, c.Create(c.ctx, secret))
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace}}
	mr.Spec.SecretRefs = []resourcesv1alpha1.LocalObjectReference{{Name: secret.Name}}
	err := c.Create(c.ctx, mr)
	if apierrors.IsAlreadyExists(err) {
		patch := fmt.Sprintf(`{"spec":{"secretRefs":[{"name":%q}]}}`, secret.Name)
		err = c.Patch(c.ctx, mr, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	must(c.t, err)
	c.t.Cleanup(func() { // before the namespace, and with it the Secret, is deleted
		_ = c.Delete(context.Background(), mr)
		d := *c
		d.ctx = context.Background()
		d.gone(name)
	})
}

func (c *cluster) gone(name string) {
	c.t.Helper()
	c.eventually("ManagedResource "+name+" is deleted", func() error {
		err := c.Get(c.ctx, c.key(name), &resourcesv1alpha1.ManagedResource{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it still exists: %w", err)
	})
}

// condition waits for a condition with a status and a text in its message, for the current generation.
func (c *cluster) condition(name string, kind resourcesv1alpha1.ConditionType, status resourcesv1alpha1.ConditionStatus, text string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%s is %s", kind, status), func() error {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := c.Get(c.ctx, c.key(name), mr); err != nil {
			return err
		}
		for _, condition := range mr.Status.Conditions {
			if mr.Status.ObservedGeneration == mr.Generation && condition.Type == kind && condition.Status == status && strings.Contains(condition.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v", mr.Status.Conditions)
	})
}

// settled waits until all objects are applied, healthy and rolled out.
func (c *cluster) settled(name string) {
	c.t.Helper()
	c.condition(name, resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue, "")
	c.condition(name, resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionTrue, "")
	c.condition(name, resourcesv1alpha1.ResourcesProgressing, resourcesv1alpha1.ConditionFalse, "")
}

func (c *cluster) web(replicas int, image, environment string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: %s
        args: [serve, ":8080"]
        env: [{name: VERSION, value: %q}]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
`, replicas, image, environment)
}

func (c *cluster) rollingUpdate() {
	c.manage("web", "-1", c.web(3, c.image("probe"), "one"))
	c.settled("web")
	before := c.available("web")
	c.manage("web", "-2", c.web(3, c.image("probe"), "two"))
	c.settled("web")
	for _, p := range c.available("web") {
		if environment, err := c.probe(p, "env"); err != nil || !strings.Contains(environment, "VERSION=two") {
			c.t.Errorf("%s does not run the new version: %v", p, err)
		}
	}
	c.t.Logf("the previous Pods were %v", before)
}

func (c *cluster) missingImage() {
	c.manage("web", "-1", c.web(1, c.image("probe")+"-missing", "one"))
	c.condition("web", resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ConditionTrue, "")
	c.condition("web", resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionFalse, "ImagePull")
	c.manage("web", "-2", c.web(1, c.image("probe"), "one"))
	c.settled("web")
}

func (c *cluster) crashLoop() {
	c.manage("web", "-1", strings.ReplaceAll(c.web(1, c.image("probe"), "one"), `args: [serve, ":8080"]`, "args: [exit]"))
	c.condition("web", resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionFalse, "Back-off restarting failed container")
	c.manage("web", "-2", c.web(1, c.image("probe"), "one"))
	c.settled("web")
}

func (c *cluster) job() {
	job := func(name, args string) string {
		return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s}
spec:
  backoffLimit: 0
  template: {spec: {restartPolicy: Never, containers: [{name: job, image: %q, args: [%s]}]}}
`, name, c.image("probe"), args)
	}
	c.manage("good", "", job("good", "env"))
	c.settled("good")
	c.manage("bad", "", job("bad", "exit"))
	c.condition("bad", resourcesv1alpha1.ResourcesHealthy, resourcesv1alpha1.ConditionFalse, "bad")
}

func (c *cluster) daemonSet() {
	c.manage("agent", "", fmt.Sprintf(`apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: agent, image: %q, args: [sleep]}]}}
`, c.image("probe")))
	c.settled("agent")
	if running := c.kubectl("get", "pods", "-l", "app=agent", "-o", "jsonpath={.items[*].status.phase}"); running != "Running" {
		c.t.Errorf("the Pods of the DaemonSet are %q, want a running one", running)
	}
}

func (c *cluster) claim() {
	c.manage("data", "", fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: store, image: %q, args: [serve, ":8080"], volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`, c.image("probe")))
	c.settled("data")
	if phase := c.kubectl("get", "pvc", "data", "-o", "jsonpath={.status.phase}"); phase != "Bound" {
		c.t.Errorf("the claim is %s", phase)
	}
}

func (c *cluster) loadBalancer() {
	c.manage("web", "", c.web(1, c.image("probe"), "one")+`---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`)
	c.settled("web")
	address := c.kubectl("get", "service", "web", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
	c.eventually("the host reaches "+address, func() error {
		_, err := fetch(c.ctx, "http://"+address)
		return err
	})
}
