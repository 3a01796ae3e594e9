package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/garbagecollector"
	"github.com/trellis-k8s/trellis/pkg/references"
	"github.com/trellis-k8s/trellis/pkg/target"
	"github.com/trellis-k8s/trellis/test/kit"
)

// addCollector adds the garbage collector of a namespace.
func addCollector(mgr manager.Manager, config *rest.Config, namespace string, by clock.Clock) error {
	metadataClient, err := metadata.NewForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	objects, err := target.NewObjects(config, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	return mgr.Add(garbagecollector.New(garbagecollector.Collector{
		Metadata: metadataClient, Dynamic: objects.DynamicClient(), Kinds: objects, Log: logr.Discard(), Clock: by,
		Options: garbagecollector.Options{SyncPeriod: 300 * time.Millisecond, Namespaces: []string{namespace}},
	}))
}

// garbage is a namespace with ConfigMaps and Secrets. Some of them are in use.
type garbage struct {
	*ground
	// stays maps the objects that must not be deleted, by resource and name, to their versions.
	stays map[string]string
}

// newGarbage changes the references of a Deployment while garbage exists.
func newGarbage(g *ground) errand {
	b := &garbage{g, map[string]string{}}
	return errand{
		run: func(ctx context.Context, l *life) error {
			config := g.controlPlane.Config()
			config.Wrap(l.wrap)
			mgr, err := manager.New(config, managerOptions(g.client.Scheme()))
			if err != nil {
				return err
			}
			if err := addCollector(mgr, config, g.namespace, ahead{}); err != nil {
				return err
			}
			return mgr.Start(ctx)
		},
		given: b.given, before: nothing, change: b.change, after: b.objections, attest: b.attest,
		picture: func() string { return strings.Join(b.names(), "\n") },
	}
}

// given creates objects in use, and one that the collector must ignore.
func (b *garbage) given() {
	b.Helper()
	b.deploy("secret-former", "configmap-always", "secret-always")
	for _, name := range []string{"former", "always", "later"} {
		b.create(name, true)
	}
	b.create("plain", false)
	b.refer("holder", "configmap-later", "secret-later", "configmap-former")
	for name, version := range b.versions() {
		if name != "secrets/former" && name != "configmaps/former" {
			b.stays[name] = version
		}
	}
}

// change turns objects in use into garbage, and creates more garbage.
func (b *garbage) change() {
	b.Helper()
	for _, name := range []string{"garbage-1", "garbage-2"} {
		b.create(name, true)
	}
	b.refer("web", "configmap-always", "secret-always", "configmap-later", "secret-later")
	b.refer("holder", "secret-always")
}

// create creates a ConfigMap and a Secret.
func (b *garbage) create(name string, collectable bool) {
	b.Helper()
	meta := metav1.ObjectMeta{Namespace: b.namespace, Name: name}
	if collectable {
		meta.Labels = map[string]string{references.LabelKeyGarbageCollectable: references.LabelValueGarbageCollectable}
	}
	kit.Must(b, b.client.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: meta}))
	kit.Must(b, b.client.Create(b.Context(), &corev1.Secret{ObjectMeta: *meta.DeepCopy()}))
}

// deploy creates two Deployments. The first one has references.
func (b *garbage) deploy(used ...string) {
	b.Helper()
	for _, name := range []string{"web", "holder"} {
		obj := &appsv1.Deployment{}
		kit.Must(b, yaml.Unmarshal([]byte(b.fill(deployment(name, 1, 1, ""))), obj))
		kit.Must(b, b.client.Create(b.Context(), obj))
	}
	b.refer("web", used...)
}

// refer replaces the references of a Deployment, "<kind>-<name>".
func (b *garbage) refer(name string, used ...string) {
	b.Helper()
	deployment := &appsv1.Deployment{}
	kit.Must(b, b.client.Get(b.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, deployment))
	deployment.Annotations = map[string]string{}
	for _, use := range used {
		kind, object, _ := strings.Cut(use, "-")
		deployment.Annotations[references.AnnotationKey(kind, object)] = object
	}
	kit.Must(b, b.client.Update(b.Context(), deployment))
}

// versions returns "<UID>/<resourceVersion>" of all objects, by resource and name.
func (b *garbage) versions() map[string]string {
	b.Helper()
	versions := map[string]string{}
	for resource, kind := range map[string]string{"configmaps": "ConfigMapList", "secrets": "SecretList"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		kit.Must(b, b.client.List(b.always(), list, client.InNamespace(b.namespace)))
		for i := range list.Items {
			versions[resource+"/"+list.Items[i].Name] = string(list.Items[i].UID) + "/" + list.Items[i].ResourceVersion
		}
	}
	return versions
}

func (b *garbage) names() []string {
	b.Helper()
	var names []string
	for name := range b.versions() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// objections returns the unreferenced objects that exist, and the referenced objects that were changed or deleted.
func (b *garbage) objections() []string {
	b.Helper()
	var objections []string
	versions := b.versions()
	for name, version := range b.stays {
		if versions[name] != version {
			objections = append(objections, fmt.Sprintf("%s had the version %s and has %q", name, version, versions[name]))
		}
		delete(versions, name)
	}
	for name := range versions {
		objections = append(objections, name+" exists, but is unreferenced")
	}
	slices.Sort(objections)
	return objections
}

// attest checks that only garbage is deleted, in the version that was found.
func (b *garbage) attest(c call, body []byte) {
	if c.verb != "delete" {
		b.violate("%s is not a deletion", c)
		return
	}
	var options metav1.DeleteOptions
	if err := json.Unmarshal(body, &options); err != nil || options.Preconditions == nil || options.Preconditions.UID == nil ||
		options.Preconditions.ResourceVersion == nil {
		b.violate("%s deletes without preconditions: %s", c, body)
	}
	if _, stays := b.stays[c.resource+"/"+c.name]; stays {
		b.violate("%s deletes an object in use", c)
	}
}
