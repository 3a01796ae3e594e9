// Package gardenerprograms contains the programs of a garden: its API server, controller-manager, scheduler and admission controller. They run
// in the runtime cluster, and their rights and registrations are in the virtual garden. The objects are those of the charts of the programs.
package gardenerprograms

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/helmchart"
	"github.com/trellis-k8s/trellis/pkg/helmchart/embedded"
)

// Program is a program of a garden, by the name of its chart.
type Program string

// The programs.
const (
	APIServer           Program = "apiserver"
	ControllerManager   Program = "controller-manager"
	Scheduler           Program = "scheduler"
	AdmissionController Program = "admission-controller"
)

// Name returns the name of the Deployment, the Service and the ServiceAccount of a program.
func (p Program) Name() string { return "gardener-" + string(p) }

// The modes of the charts.
const (
	modeRuntime = "runtime"
	modeVirtual = "garden"
)

// rendered keeps the last objects of each program and mode. A flow asks for them in each pass, usually with the same values.
var rendered = struct {
	sync.Mutex
	last map[string]lastRendered
}{last: map[string]lastRendered{}}

// lastRendered are objects, and the values from which they were rendered, as JSON.
type lastRendered struct {
	values  string
	objects []*unstructured.Unstructured
}

// render returns the objects of the chart of a program in a mode. Callers may change them.
func (p Program) render(mode string, values map[string]any) ([]*unstructured.Unstructured, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encode the values for the chart of %s: %w", p.Name(), err)
	}
	key := string(p) + "/" + mode
	rendered.Lock()
	defer rendered.Unlock()
	last := rendered.last[key]
	if last.objects == nil || last.values != string(text) {
		objects, err := p.renderNew(mode, values)
		if err != nil {
			return nil, err
		}
		last = lastRendered{values: string(text), objects: objects}
		rendered.last[key] = last
	}
	copies := make([]*unstructured.Unstructured, 0, len(last.objects))
	for _, object := range last.objects {
		copies = append(copies, object.DeepCopy())
	}
	return copies, nil
}

func (p Program) renderNew(mode string, values map[string]any) ([]*unstructured.Unstructured, error) {
	loaded, err := embedded.Load(string(p))
	if err != nil {
		return nil, err
	}
	values = maps.Clone(values)
	values["mode"], values["priorityClass"] = mode, map[string]any{"create": false}
	values["kubeconfigSecretName"] = "kubeconfig" // replaced by a projected volume
	values["user"] = "system:serviceaccount:kube-system:" + p.Name()
	rendered, err := helmchart.Render(context.Background(), loaded, helmchart.Release{Name: p.Name(), Namespace: constants.GardenNamespace},
		values, common.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("render the chart of %s: %w", p.Name(), err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range rendered.Files {
		for document := range strings.SplitSeq(file.Content, "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				return nil, fmt.Errorf("read the chart of %s, %s: %w", p.Name(), file.Name, err)
			}
			if len(object.Object) > 0 {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}
