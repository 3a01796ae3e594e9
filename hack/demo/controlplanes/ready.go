package controlplanes

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/test/podprocess"
)

const (
	// readyAnnotation is set at Pods of API servers once the process is ready.
	readyAnnotation = "demo.trellis/ready"
	probeTimeout    = 2 * time.Second
)

// HeldPods selects the Pods that a cluster with simulated nodes must not make ready before the annotation is set: see
// [controlplane.Options].
const HeldPods = `.metadata | select(.labels.role == "apiserver") | select(.annotations["` + readyAnnotation + `"] != "true") | .name`

// makeReady lets the Pods of an API server become ready if its process is, and reports whether it is.
func (r *Runner) makeReady(ctx context.Context, deployment *appsv1.Deployment, pod *podprocess.Pod) (bool, error) {
	port, err := r.port(deployment.Namespace)
	if err != nil || probe(ctx, pod, port) != nil {
		return false, err
	}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(deployment.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return false, fmt.Errorf("list the Pods of Deployment %s: %w", client.ObjectKeyFromObject(deployment), err)
	}
	for i := range pods.Items {
		if pods.Items[i].Annotations[readyAnnotation] == "true" {
			continue
		}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+readyAnnotation+`":"true"}}}`))
		if err := client.IgnoreNotFound(r.client.Patch(ctx, &pods.Items[i], patch)); err != nil {
			return false, fmt.Errorf("annotate Pod %s: %w", client.ObjectKeyFromObject(&pods.Items[i]), err)
		}
	}
	return true, nil
}

// probe sends the request of the probe of the API server's Pods.
func probe(ctx context.Context, pod *podprocess.Pod, port int) error {
	file, found := pod.Flag("token-auth-file")
	if !found {
		return fmt.Errorf("the API server has no flag --token-auth-file: its arguments are %v", pod.Args)
	}
	tokens, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	token, _, _ := strings.Cut(string(tokens), ",")
	c, err := discovery.NewDiscoveryClientForConfig(&rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", port), BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, Timeout: probeTimeout,
	})
	if err != nil {
		return err
	}
	return c.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}
