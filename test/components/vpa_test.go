package components

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-k8s/trellis/pkg/component/vpa"
	"github.com/trellis-k8s/trellis/test/controlplane"
	"github.com/trellis-k8s/trellis/test/kit"
	"github.com/trellis-k8s/trellis/test/landscape/build"
)

var withPrograms = flag.Bool("components.programs", false, "build the programs of components (the first build takes minutes), and run them")

// TestVerticalPodAutoscaler checks that the programs accept their arguments, are healthy, and work with the permissions of
// the component: a Pod is created with the recommended requests.
func TestVerticalPodAutoscaler(t *testing.T) {
	if !*withPrograms {
		t.Skip("builds three programs: run it with -components.programs")
	}
	root, err := controlplane.RepositoryRoot()
	kit.Must(t, err)
	builder := build.New(root, t.Output())
	kit.Must(t, builder.Build(t.Context(), build.Components()))
	cp, err := controlplane.Start(t.Context(), controlplane.Options{ControllerManager: true})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, cp.Stop()) })
	c := connectTo(t, cp.Config())

	certificates := t.TempDir()
	authority := kit.NewAuthority(t)
	authority.Issue(t, certificates, time.Now().Add(time.Hour))
	server := kit.FreePort(t)
	var logs []*output
	ensureNamespace(t, c, namespace)
	for _, deployment := range installScaler(t, c, authority.Bundle(), server) {
		kubeconfig := accessOf(t, cp.Config(), c, deployment.Name)
		metrics := kit.FreePort(t)
		arguments := argumentsFor(deployment, certificates, server, metrics)
		logs = append(logs, start(t, builder.Path(deployment.Name), append(arguments, "--kubeconfig="+kubeconfig)...))
		kit.EventuallyWithin(t, time.Minute, deployment.Name+" is healthy", func() string { return objectionTo(t, metrics) })
	}
	recommend(t, c)
	kit.EventuallyWithin(t, time.Minute, "a new Pod has the recommended requests", func() string { return requestsOfNewPod(t, c) })
	for _, log := range logs {
		if text := log.String(); strings.Contains(text, "forbidden") {
			t.Errorf("a program lacks permissions:\n%s", text)
		}
	}
}

const namespace = "garden"

// installScaler applies the component without the objects that need nodes, and returns its Deployments. Its webhook is
// served at a port of this machine.
func installScaler(t *testing.T, c client.Client, bundle []byte, port int) []*appsv1.Deployment {
	t.Helper()
	objects, err := vpa.Objects(vpa.Values{
		Namespace: namespace, AdmissionControllerImage: "a", RecommenderImage: "b", UpdaterImage: "c", ServerCertificate: "certificate", CABundle: bundle,
	})
	kit.Must(t, err)
	var deployments []*appsv1.Deployment
	for _, object := range objects {
		switch object := object.(type) {
		case *appsv1.Deployment:
			deployments = append(deployments, object)
			continue
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			object.Webhooks[0].ClientConfig.Service = nil
			object.Webhooks[0].ClientConfig.URL = ptr.To(fmt.Sprintf("https://127.0.0.1:%d/", port))
		case *unstructured.Unstructured:
			continue // an autoscaler of a program without Pods in this test
		}
		kit.Must(t, c.Create(t.Context(), object))
	}
	return deployments
}

// accessOf writes a kubeconfig with a token of a ServiceAccount, and returns its path.
func accessOf(t *testing.T, config *rest.Config, c client.Client, account string) string {
	t.Helper()
	token := &authenticationv1.TokenRequest{}
	kit.Must(t, c.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}, token))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	kit.Must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"seed": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"seed": {Token: token.Status.Token}},
		Contexts:  map[string]*clientcmdapi.Context{"seed": {Cluster: "seed", AuthInfo: "seed"}}, CurrentContext: "seed",
	}, path))
	return path
}

// argumentsFor returns the arguments of a Deployment's container, with the files and ports of this machine.
func argumentsFor(deployment *appsv1.Deployment, certificates string, server, metrics int) []string {
	here := map[string]string{
		"--tls-cert-file": filepath.Join(certificates, "tls.crt"), "--tls-private-key": filepath.Join(certificates, "tls.key"),
		"--port": fmt.Sprint(server), "--address": fmt.Sprintf("127.0.0.1:%d", metrics),
	}
	var arguments []string
	for _, argument := range deployment.Spec.Template.Spec.Containers[0].Args {
		if name, _, _ := strings.Cut(argument, "="); here[name] != "" {
			argument = name + "=" + here[name]
		}
		arguments = append(arguments, argument)
	}
	return arguments
}

// output records the output of a process.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(data)
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

// start runs a program until the test ends.
func start(t *testing.T, program string, arguments ...string) *output {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = append(os.Environ(), "NAMESPACE="+namespace)
	log := &output{}
	command.Stdout, command.Stderr = log, log
	kit.Must(t, command.Start())
	t.Cleanup(func() {
		stop()
		_ = command.Wait() // the process was killed
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(program), log)
		}
	})
	return log
}

func objectionTo(t *testing.T, port int) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/health-check", port), nil)
	kit.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.Status
	}
	return ""
}

var labels = map[string]string{"app": "web"}

// recommend creates a Deployment with an autoscaler that has a recommendation, as if the recommender had received metrics.
func recommend(t *testing.T, c client.Client) {
	t.Helper()
	kit.Must(t, c.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "web", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
				}}},
			},
		},
	}))
	for _, object := range objectsIn(t, "testdata/autoscaler.yaml") {
		status := object.Object["status"]
		kit.Must(t, c.Create(t.Context(), object))
		object.Object["status"] = status
		kit.WriteStatus(t, c, object)
	}
}

// requestsOfNewPod checks the requests of the Deployment's Pods. Unless one has the recommended requests, it deletes all
// Pods and returns their requests.
func requestsOfNewPod(t *testing.T, c client.Client) string {
	t.Helper()
	pods := &corev1.PodList{}
	kit.Must(t, c.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels(labels)))
	text := fmt.Sprintf("%d Pods", len(pods.Items))
	for i := range pods.Items {
		requests := pods.Items[i].Spec.Containers[0].Resources.Requests
		if requests.Cpu().String() == "123m" {
			return ""
		}
		text += " " + requests.Cpu().String()
		kit.Must(t, client.IgnoreNotFound(c.Delete(t.Context(), &pods.Items[i], client.GracePeriodSeconds(0))))
	}
	return text
}
