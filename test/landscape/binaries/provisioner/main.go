// Command local-provisioner creates volumes for PersistentVolumeClaims: directories on the node that the Pod is scheduled
// to. It runs on each node.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const nodeAnnotation = "landscape.trellis.local/node"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the cluster; leave it empty in a Pod")
	node := flag.String("node", "", "name of the node that the directories are on")
	directory := flag.String("directory", "/var/lib/local-volumes", "parent directory of the volumes")
	name := flag.String("provisioner", "landscape.trellis.local/directory", "name of the provisioner in StorageClasses")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, &provisioner{*node, *directory}, *name); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string, p *provisioner, name string) error {
	if p.node == "" {
		return errors.New("-node is missing")
	}
	if err := os.MkdirAll(p.directory, 0o755); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	// Each node has its own provisioner, so leader election is not needed.
	controller.NewProvisionController(ctx, client, name, p, controller.LeaderElection(false)).Run(ctx)
	return nil
}

type provisioner struct{ node, directory string }

// Provision creates a directory if the Pod of the claim is scheduled to this node.
func (p *provisioner) Provision(
	_ context.Context, o controller.ProvisionOptions,
) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if o.SelectedNodeName != p.node {
		return nil, controller.ProvisioningFinished, &controller.IgnoredError{Reason: "another node has to provision it"}
	}
	if o.PVC.Spec.Selector != nil {
		return nil, controller.ProvisioningFinished, errors.New("claims with a selector are not supported")
	}
	path := filepath.Join(p.directory, o.PVName)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	if err := os.Chmod(path, 0o777); err != nil { // for every user that the container might run as
		return nil, controller.ProvisioningFinished, err
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName, Annotations: map[string]string{nodeAnnotation: p.node}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   o.PVC.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: o.PVC.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			StorageClassName:              o.StorageClass.Name,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{p.node},
				}},
			}}}},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete removes the directory if it is on this node.
func (p *provisioner) Delete(_ context.Context, volume *corev1.PersistentVolume) error {
	if volume.Annotations[nodeAnnotation] != p.node {
		return &controller.IgnoredError{Reason: "another node has to delete it"}
	}
	return os.RemoveAll(filepath.Join(p.directory, volume.Name))
}
