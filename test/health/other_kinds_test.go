package health

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var service = kindOf("v1", "Service")

const (
	serviceOf = `
apiVersion: v1
kind: Service
metadata: {name: app, namespace: $NAMESPACE, annotations: {$ANNOTATIONS}}
spec: {type: $TYPE, ports: [{port: 80}]}
`
	configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: app, namespace: $NAMESPACE}
data: {key: "1"}
`
	disruptionBudget = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: app, namespace: $NAMESPACE}
spec: {minAvailable: 1, selector: {matchLabels: {app: none}}}
`
	volumeClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: app, namespace: $NAMESPACE}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
)

func serviceWith(serviceType, annotations string) string {
	return strings.NewReplacer("$TYPE", serviceType, "$ANNOTATIONS", annotations).Replace(serviceOf)
}

func otherStories() []story {
	waits := unhealthy("ServiceUnhealthy", `is unhealthy: service is missing ingress status`)
	return []story{
		{"Service", []step{
			{state: "load balancer without an address", manifest: serviceWith("LoadBalancer", ""), healthy: waits, progressing: isRolledOut},
			{
				state: "load balancer with an address", healthy: isHealthy, progressing: isRolledOut,
				act: func(f *fixture) {
					f.setStatus(service, "app", `{"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}`)
				},
			},
			{
				state: "load balancer that lost its address", healthy: waits, progressing: isRolledOut,
				act: func(f *fixture) { f.setStatus(service, "app", `{"loadBalancer": {"ingress": null}}`) },
			},
			{state: "not to be checked", manifest: serviceWith("LoadBalancer", `resources.gardener.cloud/skip-health-check: "true"`), healthy: isHealthy, progressing: isRolledOut},
			{state: "to be checked again", manifest: serviceWith("LoadBalancer", ""), healthy: waits, progressing: isRolledOut},
			{
				state: "by hand not to be checked", healthy: isHealthy, progressing: isRolledOut,
				act: func(f *fixture) {
					f.patch(service, "app", `{"metadata": {"annotations": {"resources.gardener.cloud/skip-health-check": "true"}}}`)
				},
			},
			{
				state: "by hand to be checked again", healthy: waits, progressing: isRolledOut,
				act: func(f *fixture) {
					f.patch(service, "app", `{"metadata": {"annotations": {"resources.gardener.cloud/skip-health-check": null}}}`)
				},
			},
		}},
		{"Service", []step{{state: "in the cluster only", manifest: serviceWith("ClusterIP", ""), healthy: isHealthy, progressing: isRolledOut}}},
		{"ConfigMap", []step{{state: "nothing to check", manifest: configMap, healthy: isHealthy, progressing: isRolledOut}}},
		{"PodDisruptionBudget", []step{{state: "of no Pods", manifest: disruptionBudget, healthy: isHealthy, progressing: isRolledOut}}},
		{"PersistentVolumeClaim", []step{{state: "pending", manifest: volumeClaim, healthy: isHealthy, progressing: isRolledOut}}},
		{"CustomResourceDefinition", []step{{
			state: "established", manifest: manifestOf(definition("states.example.org", "v1", "Fine", "fines")), healthy: isHealthy, progressing: isRolledOut,
		}}},
		{"CustomResourceDefinition", []step{
			{
				state: "of a kind that is taken", healthy: unhealthy("CustomResourceDefinitionUnhealthy", `condition "NamesAccepted" has invalid status False`),
				progressing: isRolledOut, manifest: manifestOf(definition("taken.example.org", "v1", "Taken", "others")),
				before: func(f *fixture) {
					must(f, f.client.Create(f.ctx, unstructuredOf(f, definition("taken.example.org", "v1", "Taken", "firsts"))))
				},
			},
		}},
	}
}

func missingStories() []story {
	orphan := definition("gone.example.org", "v1", "Orphan", "orphans")
	return []story{
		{"Orphan", []step{
			{
				state: "there", healthy: isHealthy, progressing: isRolledOut,
				manifest: manifestOf(orphan) + "---\napiVersion: gone.example.org/v1\nkind: Orphan\nmetadata: {name: app, namespace: $NAMESPACE}\n",
			},
			{
				// The definition is released from the ManagedResource, and then deleted.
				state: "without its definition", healthy: unhealthy("OrphanMissing", `Required Orphan "app" in namespace`), progressing: isRolledOut,
				manifest: manifestOf(withAnnotation(orphan, "resources.gardener.cloud/mode", "Ignore")) +
					"---\napiVersion: gone.example.org/v1\nkind: Orphan\nmetadata: {name: app, namespace: $NAMESPACE}\n",
				act: func(f *fixture) {
					f.eventuallyReleased(managed, "CustomResourceDefinition")
					must(f, f.client.Delete(f.ctx, f.named(definitionKind, orphan.Name)))
				},
			},
		}},
		{"Unknown", []step{{
			state: "of a kind that was never there", manifest: "apiVersion: never.example.org/v1\nkind: Unknown\nmetadata: {name: app, namespace: $NAMESPACE}\n",
			healthy: unhealthy("UnknownMissing", "does not serve this kind"), progressing: isRolledOut,
		}}},
	}
}

var definitionKind = kindOf("apiextensions.k8s.io/v1", "CustomResourceDefinition")

func withAnnotation(definition *apiextensionsv1.CustomResourceDefinition, key, value string) *apiextensionsv1.CustomResourceDefinition {
	definition = definition.DeepCopy()
	definition.Annotations[key] = value
	return definition
}

// manifestOf returns the manifest of a definition.
func manifestOf(definition *apiextensionsv1.CustomResourceDefinition) string {
	definition = definition.DeepCopy()
	definition.SetGroupVersionKind(definitionKind)
	text, err := yaml.Marshal(definition)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// eventuallyReleased waits until no object of a kind is in the inventory.
func (f *fixture) eventuallyReleased(name, kind string) {
	f.Helper()
	f.eventually("no "+kind+" is in the inventory", func() string {
		for _, entry := range f.read(name).Status.Resources {
			if entry.Kind == kind {
				return entry.Kind + " " + entry.Name
			}
		}
		return ""
	})
}
