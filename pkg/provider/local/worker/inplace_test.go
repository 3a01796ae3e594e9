package worker

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/inplace"
)

// updatedMachine returns a ready machine that was updated to a hash, with changes.
func updatedMachine(name, hash string, change ...func(*Machine)) Machine {
	m := Machine{Name: name, Deployment: "d", Class: "c", Ready: true, WasReady: true, HasNode: true, Update: Update{Hash: hash}}
	for _, each := range change {
		each(&m)
	}
	return m
}

// TestDecideUpdates checks which machines are updated in place, and what the Worker reports.
func TestDecideUpdates(t *testing.T) {
	now := time.Unix(1e9, 0)
	updating := func(result string) func(*Machine) {
		return func(m *Machine) {
			m.Updating, m.Target, m.Result, m.Reason, m.WithoutPods = now, "new", result, "no disk", result != ""
		}
	}
	selected := func(m *Machine) { m.Selected = true }
	down := func(m *Machine) { m.Ready = false }
	const auto, manual = corev1beta1.AutoInPlaceUpdate, corev1beta1.ManualInPlaceUpdate
	for name, test := range map[string]struct {
		strategy corev1beta1.MachineUpdateStrategy
		machines []Machine
		steps    []string
		waiting  string
		updated  bool
	}{
		"updated":          {auto, []Machine{updatedMachine("a", "new"), updatedMachine("b", "new")}, nil, "", true},
		"outdated":         {auto, []Machine{updatedMachine("a", "old"), updatedMachine("b", "old")}, []string{"a begins"}, "2 machines must be updated", false},
		"one is down":      {auto, []Machine{updatedMachine("a", "old"), updatedMachine("b", "new", down)}, nil, "1 machines must be updated", false},
		"the one is down":  {auto, []Machine{updatedMachine("a", "old", down), updatedMachine("b", "new")}, []string{"a begins"}, "1 machines must be updated", false},
		"one is updated":   {auto, []Machine{updatedMachine("a", "old", updating("")), updatedMachine("b", "old")}, []string{"a"}, "2 machines must be updated", false},
		"one is finished":  {auto, []Machine{updatedMachine("a", "old", updating(inplace.Successful)), updatedMachine("b", "old")}, []string{"a finished"}, "2 machines must be updated", false},
		"one has failed":   {auto, []Machine{updatedMachine("a", "old", updating(inplace.Failed)), updatedMachine("b", "old")}, []string{"a"}, "a could not be updated in place: no disk", false},
		"new":              {auto, []Machine{updatedMachine("a", "new")}, nil, "", false},
		"none is chosen":   {manual, []Machine{updatedMachine("a", "old"), updatedMachine("b", "old")}, nil, "", false},
		"one is chosen":    {manual, []Machine{updatedMachine("a", "old"), updatedMachine("b", "old", selected)}, []string{"b begins"}, "", false},
		"both are chosen":  {manual, []Machine{updatedMachine("a", "old", selected), updatedMachine("b", "old", selected)}, []string{"a begins", "b begins"}, "", false},
		"the chosen one":   {manual, []Machine{updatedMachine("a", "old"), updatedMachine("b", "old", updating(""))}, []string{"b"}, "2 machines must be updated", false},
		"without its Node": {auto, []Machine{updatedMachine("a", "", func(m *Machine) { m.HasNode, m.Ready = false, false }), updatedMachine("b", "new")}, nil, "1 machines must be updated", false},
	} {
		in := inputs{machines: test.machines, now: now, deployments: []Deployment{{
			Pool: Pool{InPlaceHash: "new", WorkerPool: extensionsv1alpha1.WorkerPool{
				Name: "pool", UpdateStrategy: ptr.To(test.strategy), MaxUnavailable: intstr.FromInt32(1),
			}}, Name: "d", Class: "c", Least: 2,
		}}}
		var out outcome
		if err := in.decideUpdates(&out); err != nil {
			t.Fatal(err)
		}
		var steps []string
		for _, step := range out.Updates {
			text := step.Machine
			if step.Begins {
				text += " begins"
			}
			if step.Finished {
				text += " finished"
			}
			if steps = append(steps, text); step.Target != "new" {
				t.Errorf("%s: %s is updated to %q", name, step.Machine, step.Target)
			}
		}
		waiting := strings.Join(append(out.Waiting, out.Failed...), "; ")
		if !slices.Equal(steps, test.steps) || !strings.Contains(waiting, test.waiting) || (waiting == "") != (test.waiting == "") || (out.Updated["pool"] == "new") != test.updated {
			t.Errorf("%s: steps %q, waiting %q, updated %v", name, steps, waiting, out.Updated)
		}
	}
}

// TestReportUpdated checks that a pool keeps its hash until all its machines are updated, and loses it with the strategy.
func TestReportUpdated(t *testing.T) {
	in := inputs{deployments: []Deployment{
		{Pool: Pool{InPlaceHash: "new", WorkerPool: extensionsv1alpha1.WorkerPool{Name: "a"}}},
		{Pool: Pool{InPlaceHash: "new", WorkerPool: extensionsv1alpha1.WorkerPool{Name: "b"}}},
		{Pool: Pool{WorkerPool: extensionsv1alpha1.WorkerPool{Name: "c"}}},
	}}
	worker := &extensionsv1alpha1.Worker{}
	worker.Status.InPlaceUpdates = &extensionsv1alpha1.WorkerInPlaceUpdatesStatus{WorkerPoolToHashMap: map[string]string{"a": "old", "b": "old", "c": "old"}}
	in.reportUpdated(worker, map[string]string{"b": "new"})
	if got := worker.Status.InPlaceUpdates.WorkerPoolToHashMap; !reflect.DeepEqual(got, map[string]string{"a": "old", "b": "new"}) {
		t.Errorf("got %v", got)
	}
	in.deployments = in.deployments[2:]
	if in.reportUpdated(worker, nil); worker.Status.InPlaceUpdates != nil {
		t.Errorf("got %+v", worker.Status.InPlaceUpdates)
	}
}

// TestClassInPlace checks that another version of the image does not replace machines that are updated in place, and that a new machine
// gets the version.
func TestClassInPlace(t *testing.T) {
	pool := func(version, hash string) Pool {
		return Pool{
			Image: "image:" + version, InPlaceHash: hash, UserData: []byte("#!/bin/bash\nset -e\n\nif [ -e /var/lib/osc/provision-osc-applied ]; then\n  exit 0\nfi\nnext\n"),
			WorkerPool: extensionsv1alpha1.WorkerPool{
				Name: "a", MachineImage: extensionsv1alpha1.MachineImage{Name: "local", Version: version}, NodeAgentSecretName: ptr.To("key"),
			},
		}
	}
	class := func(pool Pool) string {
		text, err := classOf(pool)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if class(pool("1.0.0", "x")) != class(pool("1.1.0", "y")) || class(pool("1.0.0", "")) == class(pool("1.1.0", "")) {
		t.Error("the class does not follow the strategy")
	}
	data := (Deployment{Pool: pool("1.1.0", "x")}).userData("m", nil)
	if !bytes.Contains(data, []byte("fi\nsed -i -E 's/^PRETTY_NAME=.*/PRETTY_NAME=\"Machine Image Version 1.1.0\"/' /etc/os-release\nnext")) {
		t.Errorf("the user data is\n%s", data)
	}
	if data := (Deployment{Pool: pool("1.1.0", "")}).userData("m", nil); bytes.Contains(data, []byte("PRETTY_NAME")) {
		t.Errorf("machines that are replaced have the user data\n%s", data)
	}
}

func TestUpdateOf(t *testing.T) {
	at := time.Unix(1e9, 0).UTC()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{LabelSelected: "true", inplace.LabelResult: inplace.Failed},
		Annotations: map[string]string{AnnotationUpdating: at.Format(time.RFC3339), AnnotationTarget: "new", inplace.AnnotationReason: "why"},
	}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: inplace.Condition, Reason: inplace.ReasonReady}}
	want := Update{Hash: "old", Target: "new", Updating: at, WithoutPods: true, Result: inplace.Failed, Reason: "why", Selected: true}
	if got := updateOf(node, Update{Hash: "old"}); got != want {
		t.Errorf("got %+v", got)
	}
	node.Annotations[AnnotationUpdated] = "newer"
	if got := updateOf(node, Update{Hash: "old"}); got.Hash != "newer" {
		t.Errorf("got %+v", got)
	}
}
