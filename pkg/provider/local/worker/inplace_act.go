package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/inplace"
)

// Reasons of the condition InPlaceUpdate of Nodes (machine-controller-manager).
const (
	reasonSelected   = "SelectedForUpdate"
	reasonSuccessful = "UpdateSuccessful"
)

// updateInPlace takes the next step of the updates of machines.
func (a *Actuator) updateInPlace(ctx context.Context, kube kubernetes.Interface, steps []UpdateStep, now time.Time) error {
	var errs []error
	for _, step := range steps {
		if err := updateNode(ctx, kube, step, now); err != nil {
			errs = append(errs, fmt.Errorf("update machine %s in place: %w", step.Machine, err))
		}
	}
	return errors.Join(errs...)
}

// updateNode takes the next step of the update of a Node. The condition is written before the metadata: the node agent begins when the
// condition says that the Pods are gone, and no result of an earlier update is left.
func updateNode(ctx context.Context, kube kubernetes.Interface, step UpdateStep, now time.Time) error {
	node := prefixMachine + step.Machine
	switch {
	case step.Begins:
		if err := setCondition(ctx, kube, node, reasonSelected, now); err != nil {
			return err
		}
		err := patchNode(ctx, kube, node, map[string]any{"metadata": map[string]any{
			"annotations": map[string]any{AnnotationUpdating: now.UTC().Format(time.RFC3339), AnnotationTarget: step.Target},
			"labels":      map[string]any{inplace.LabelResult: nil},
		}})
		if err != nil {
			return err
		}
	case step.Finished:
		if err := setCondition(ctx, kube, node, reasonSuccessful, now); err != nil {
			return err
		}
		return patchNode(ctx, kube, node, map[string]any{
			"metadata": map[string]any{
				"annotations": map[string]any{AnnotationUpdated: step.Target, AnnotationUpdating: nil, AnnotationTarget: nil},
				"labels":      map[string]any{LabelSelected: nil},
			},
			"spec": map[string]any{"unschedulable": false},
		})
	}
	empty, err := (&drainer{kube, AnnotationUpdating}).drain(ctx, node, now)
	if err != nil || !empty || step.WithoutPods {
		return err
	}
	return setCondition(ctx, kube, node, inplace.ReasonReady, now)
}

// setCondition writes the condition of a Node with a reason.
func setCondition(ctx context.Context, kube kubernetes.Interface, node, reason string, now time.Time) error {
	at := metav1.NewTime(now)
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{{
		Type: inplace.Condition, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: at, LastHeartbeatTime: at,
	}}}})
	if err != nil {
		return err
	}
	_, err = kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func patchNode(ctx context.Context, kube kubernetes.Interface, node string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
