package spreadconstraints

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit/admittest"
)

func erase(pod *corev1.Pod) {
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		if constraint.LabelSelector != nil {
			delete(constraint.LabelSelector.MatchLabels, hashLabel)
			if len(constraint.LabelSelector.MatchLabels)+len(constraint.LabelSelector.MatchExpressions) == 0 {
				constraint.LabelSelector = nil
			}
		}
		constraint.MatchLabelKeys = nil
	}
}

func TestConstraints(t *testing.T) {
	with := func(constraints string) string {
		return "metadata: {labels: {app: a, pod-template-hash: 123abc}}\nspec: {containers: [], topologySpreadConstraints: [" + constraints + "]}"
	}
	const zone = `maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule`
	admittest.Pods(NewHandler(), erase).Run(t, map[string]admittest.Case{
		"the selector gets the hash": {
			Before: with(`{` + zone + `, labelSelector: {matchLabels: {app: a}}}`),
			After:  with(`{` + zone + `, labelSelector: {matchLabels: {app: a, pod-template-hash: 123abc}}}`),
		},
		"no selector": {
			Before: with(`{` + zone + `}`),
			After:  with(`{` + zone + `, labelSelector: {matchLabels: {pod-template-hash: 123abc}}}`),
		},
		"an empty selector": {
			Before: with(`{` + zone + `, labelSelector: {}}`),
			After:  with(`{` + zone + `, labelSelector: {matchLabels: {pod-template-hash: 123abc}}}`),
		},
		"all of several constraints": {
			Before: with(`{` + zone + `, labelSelector: {matchLabels: {app: a}}}, {maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}`),
			After: with(`{` + zone + `, labelSelector: {matchLabels: {app: a, pod-template-hash: 123abc}}},
				{maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, minDomains: 2, labelSelector: {matchLabels: {pod-template-hash: 123abc}}}`),
		},
		"the hash is in the labels, of whatever value": {Before: with(`{` + zone + `, labelSelector: {matchLabels: {pod-template-hash: other}}}`)},
		"the hash is in an expression with In": {
			Before: with(`{` + zone + `, labelSelector: {matchExpressions: [{key: pod-template-hash, operator: In, values: [other]}]}}`),
		},
		"other expressions do not count": {
			Before: with(`{` + zone + `, labelSelector: {matchExpressions: [{key: pod-template-hash, operator: Exists}, {key: app, operator: In, values: [a]}]}}`),
			After: with(`{` + zone + `, labelSelector: {matchLabels: {pod-template-hash: 123abc}, matchExpressions: [
				{key: pod-template-hash, operator: Exists}, {key: app, operator: In, values: [a]}]}}`),
		},
		"the key leaves matchLabelKeys": {
			Before: with(`{` + zone + `, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [pod-template-hash]}`),
			After:  with(`{` + zone + `, labelSelector: {matchLabels: {app: a, pod-template-hash: 123abc}}}`),
		},
		"other keys stay in matchLabelKeys": {
			Before: with(`{` + zone + `, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [x, pod-template-hash, y]}`),
			After:  with(`{` + zone + `, labelSelector: {matchLabels: {app: a, pod-template-hash: 123abc}}, matchLabelKeys: [x, y]}`),
		},
		"a constraint that is left alone keeps matchLabelKeys": {
			Before: with(`{` + zone + `, labelSelector: {matchLabels: {pod-template-hash: other}}, matchLabelKeys: [pod-template-hash]}`),
		},
		"no constraints": {Before: with("")},
		"no hash":        {Before: `spec: {containers: [], topologySpreadConstraints: [{` + zone + `, matchLabelKeys: [pod-template-hash]}]}`},
	})
}

func FuzzConstraints(f *testing.F) {
	handler := admittest.Pods(NewHandler(), erase)
	f.Add([]byte(`{"metadata":{"labels":{"pod-template-hash":"a"}},"spec":{"topologySpreadConstraints":[{"maxSkew":1,"matchLabelKeys":["a","pod-template-hash","b"]},` +
		`{"labelSelector":{"matchLabels":{"x":"y"},"matchExpressions":[{"key":"pod-template-hash","operator":"NotIn","values":["b"]}]}},` +
		`{"labelSelector":{"matchExpressions":[{"key":"pod-template-hash","operator":"In","values":["b"]}]}}]}}`))
	f.Add([]byte(`{"metadata":{"labels":{"pod-template-hash":""}},"spec":{"topologySpreadConstraints":[null,{"labelSelector":{}}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) { handler.Robust(t, raw) })
}
