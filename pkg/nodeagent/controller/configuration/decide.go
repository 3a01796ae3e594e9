package configuration

import (
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
)

// apiServerManifest is a file of nodes that run the control plane.
const apiServerManifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"

// The labels of nodes by their role.
const (
	labelWorker       = "node-role.kubernetes.io/worker"
	labelControlPlane = "node-role.kubernetes.io/control-plane"
)

// facts are what decides when a configuration is applied.
type facts struct {
	// wanted is the checksum of the configuration. last and begun are those that were applied last as a whole, and begun since; empty if none was.
	wanted, last, begun string
	// seen is when the node agent first saw the wanted one, or that its turn has come.
	seen, now time.Time
	// delay is the delay of this node. It spreads the restarts of kubelets.
	delay time.Duration
	turn  turn
}

// turn says whether a node may apply a changed configuration.
type turn int

const (
	turnAny   turn = iota // after its delay
	turnFirst             // before the others of its pool, at once
	turnLater             // when another node has tried it
	turnOpen              // as no node is chosen yet: when one is, or after unchosen
)

// unchosen is how long a node waits until a first node is chosen for a configuration. The program that applies the Secret chooses it within
// seconds, unless another one has taken over the cluster.
const unchosen = 10 * time.Minute

// turnOf returns the turn of a node. The resource-manager of the cluster writes it (package firstnode). Without it, nodes do not wait
// for each other.
func turnOf(node *corev1.Node, secret *corev1.Secret, wanted string) turn {
	tried, known := secret.Annotations[constants.AnnotationNodeAgentTriedChecksum]
	switch {
	case !known || tried == wanted:
		return turnAny
	case node != nil && secret.Annotations[constants.AnnotationNodeAgentFirstNode] == node.Name+"/"+wanted:
		return turnFirst
	case strings.HasSuffix(secret.Annotations[constants.AnnotationNodeAgentFirstNode], "/"+wanted):
		return turnLater
	}
	return turnOpen
}

// wait returns how long the application waits, or that it waits for another node. A machine without a configuration, and one that was
// begun, do not wait.
func (f facts) wait() (delay time.Duration, forAnother bool) {
	switch {
	case f.last == "" || f.begun == f.wanted || f.turn == turnFirst:
		return 0, false
	case f.turn == turnLater:
		return 0, true
	case f.turn == turnOpen && f.now.Before(f.seen.Add(unchosen)):
		return f.seen.Add(unchosen).Sub(f.now), true
	}
	return max(f.seen.Add(f.delay).Sub(f.now), 0), false
}

// delayOf returns the delay of a node that the resource-manager of the cluster wrote. A node without one, one that does not exist and nodes that apply
// their configuration one after the other have none.
func delayOf(node *corev1.Node, secret *corev1.Secret) time.Duration {
	if node == nil || secret.Annotations[constants.AnnotationNodeAgentSerialReconciliation] == "true" {
		return 0
	}
	delay, err := time.ParseDuration(node.Annotations[constants.AnnotationNodeAgentReconciliationDelay])
	if err != nil {
		return 0
	}
	return max(delay, 0)
}

// report is what a node says about its configuration, which it has applied at a time.
type report struct {
	checksum, version, zone string
	controlPlane            bool
	at                      time.Time
}

// isControlPlane reports whether a node with a configuration runs the control plane.
func isControlPlane(config *osc.Config) bool {
	for _, file := range config.Files {
		if file.Path == apiServerManifest {
			return true
		}
	}
	return false
}

// patch returns the JSON merge patch with which a node says it, or nil if it says so already. The version is a label as well as an annotation:
// kube-proxy selects nodes by the label.
func (r report) patch(node *corev1.Node) ([]byte, error) {
	role := labelWorker
	if r.controlPlane {
		role = labelControlPlane
	}
	labels := map[string]string{role: "", constants.LabelWorkerKubernetesVersion: r.version}
	if r.zone != "" {
		labels[corev1.LabelTopologyZone] = r.zone
	}
	annotations := map[string]string{
		constants.LabelWorkerKubernetesVersion: r.version, constants.AnnotationChecksumCloudConfigData: r.checksum,
	}
	if node.Annotations[constants.AnnotationChecksumCloudConfigData] != r.checksum {
		annotations[constants.AnnotationNodeAgentAppliedAt] = r.at.UTC().Format(time.RFC3339)
	}
	change := map[string]map[string]string{}
	for field, pair := range map[string][2]map[string]string{"labels": {labels, node.Labels}, "annotations": {annotations, node.Annotations}} {
		for key, value := range pair[0] {
			if current, found := pair[1][key]; found && current == value {
				continue
			}
			if change[field] == nil {
				change[field] = map[string]string{}
			}
			change[field][key] = value
		}
	}
	if len(change) == 0 {
		return nil, nil
	}
	return json.Marshal(map[string]any{"metadata": change})
}
