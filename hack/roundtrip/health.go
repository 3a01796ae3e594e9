package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// quiet is how long conditions must stay unchanged to be considered final.
const quiet = time.Minute

// printHealth prints every change of the health conditions until they are final.
func (c *cluster) printHealth(ctx context.Context, name string) error {
	start := time.Now()
	changed, last := start, []resourcesv1alpha1.Condition(nil)
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		mr := &resourcesv1alpha1.ManagedResource{}
		if err := c.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, mr); err != nil {
			return false, err
		}
		for _, condition := range mr.Status.Conditions {
			if condition.Type == resourcesv1alpha1.Ready || slices.ContainsFunc(last, func(c resourcesv1alpha1.Condition) bool {
				return equality.Semantic.DeepEqual(c, condition)
			}) {
				continue
			}
			changed = time.Now()
			fmt.Fprintf(c.out, "  %5.1f s  %s is %s (%s): %s\n", time.Since(start).Seconds(), condition.Type, condition.Status, condition.Reason,
				strings.ReplaceAll(condition.Message, "\n", "\n           "))
		}
		last = mr.Status.Conditions
		return time.Since(changed) > quiet, nil
	})
}
