// Package crds contains the CustomResourceDefinitions of a seed.
package crds

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/config/crd"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// Group is a group of definitions that are installed together.
type Group string

// The groups of definitions. Groups for the observability stack can be added with files below config/crd and a row in the
// table of this package.
const (
	// ManagedResources is the definition of ManagedResources.
	ManagedResources Group = "ManagedResources"
	// Extensions are the kinds of extensions that a garden cluster needs too: BackupBucket, BackupEntry, DNSRecord,
	// Extension.
	Extensions Group = "Extensions"
	// ShootExtensions are the other kinds of extensions, and Cluster.
	ShootExtensions Group = "ShootExtensions"
	// Etcd are Etcd and EtcdCopyBackupsTask.
	Etcd Group = "Etcd"
	// Machines are the kinds of machine.sapcloud.io: extensions show by Machine which machines exist, and describe machines for
	// machine-controller-manager by the others.
	Machines Group = "Machines"
	// VerticalPodAutoscaler are VerticalPodAutoscaler and its checkpoints.
	VerticalPodAutoscaler Group = "VerticalPodAutoscaler"
	// Istio are the kinds of Istio.
	Istio Group = "Istio"
	// GatewayAPI are the kinds of the standard channel of the Gateway API that gateways watch.
	GatewayAPI Group = "GatewayAPI"
)

// group describes the definitions of a group.
type group struct {
	directory string
	// has reports whether the group contains a definition in the directory; nil if it contains all.
	has func(plural string) bool
	// protected definitions can be deleted only with a confirmation.
	protected bool
}

// generalExtensions are the kinds that each cluster with extensions needs.
var generalExtensions = []string{"backupbuckets", "backupentries", "dnsrecords", "extensions"}

var groups = map[Group]group{
	ManagedResources:      {directory: "."},
	Extensions:            {directory: "extensions", protected: true, has: isGeneral},
	ShootExtensions:       {directory: "extensions", protected: true, has: func(plural string) bool { return !isGeneral(plural) }},
	Etcd:                  {directory: "druid", protected: true},
	Machines:              {directory: "machine"},
	VerticalPodAutoscaler: {directory: "autoscaling"},
	Istio:                 {directory: "istio"},
	GatewayAPI:            {directory: "gatewayapi"},
}

// Groups returns all groups, sorted.
func Groups() []Group { return slices.Sorted(maps.Keys(groups)) }

func isGeneral(plural string) bool { return slices.Contains(generalExtensions, plural) }

// Values are the inputs of the component.
type Values struct {
	// Groups are the groups to install.
	Groups []Group
}

// Objects returns the definitions. They are kept when the component is deleted, because deleting a definition deletes
// all objects of its kind.
func Objects(values Values) ([]client.Object, error) {
	var objects []client.Object
	for _, name := range values.Groups {
		group, known := groups[name]
		if !known {
			return nil, fmt.Errorf("the group %q of definitions is unknown", name)
		}
		definitions, err := group.read()
		if err != nil {
			return nil, fmt.Errorf("read the definitions of the group %s: %w", name, err)
		}
		for _, definition := range definitions {
			objects = append(objects, definition)
		}
	}
	return objects, nil
}

// read returns the definitions of a group, sorted by file name.
func (g group) read() ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(crd.Files, path.Join(g.directory, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var definitions []*unstructured.Unstructured
	for _, file := range files {
		content, err := fs.ReadFile(crd.Files, file)
		if err != nil {
			return nil, err
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &definition.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		plural, _, err := unstructured.NestedString(definition.Object, "spec", "names", "plural")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if g.has == nil || g.has(plural) {
			g.mark(definition)
			definitions = append(definitions, definition)
		}
	}
	return definitions, nil
}

// mark adds the labels and annotations of a definition in a seed.
func (g group) mark(definition *unstructured.Unstructured) {
	annotations := definition.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[resourcesv1alpha1.AnnotationKeepObject] = "true"
	definition.SetAnnotations(annotations)
	if g.protected {
		definition.SetLabels(map[string]string{constants.LabelDeletionProtected: "true"})
	}
}
