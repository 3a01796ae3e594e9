package schedulername

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/webhookserver/admit/admittest"
)

func erase(pod *corev1.Pod) { pod.Spec.SchedulerName = "" }

func TestSchedulerName(t *testing.T) {
	admittest.Pods(NewHandler("bin-packing-scheduler"), erase).Run(t, map[string]admittest.Case{
		"none": {
			Before: `spec: {containers: []}`,
			After:  `spec: {containers: [], schedulerName: bin-packing-scheduler}`,
		},
		"the default one": {
			Before: `spec: {containers: [], schedulerName: default-scheduler}`,
			After:  `spec: {containers: [], schedulerName: bin-packing-scheduler}`,
		},
		"another one": {Before: `spec: {containers: [], schedulerName: another}`},
	})
	admittest.Pods(NewHandler("default-scheduler"), erase).Run(t, map[string]admittest.Case{
		"the default one stays": {Before: `spec: {containers: [], schedulerName: default-scheduler}`},
	})
}

func FuzzSchedulerName(f *testing.F) {
	handler := admittest.Pods(NewHandler("bin-packing-scheduler"), erase)
	f.Add([]byte(`{"spec":{"schedulerName":"default-scheduler","containers":[{"name":"a"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) { handler.Robust(t, raw) })
}
