package landscape

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/template"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

//go:embed manifests
var manifests embed.FS

// fieldOwner owns the fields that the landscape applies.
const fieldOwner = client.FieldOwner("landscape")

// Client returns a client for the base cluster.
func (l *Landscape) Client() (client.Client, error) {
	config, err := l.Config()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connecting to the base cluster: %w", err)
	}
	return c, nil
}

// deploy applies the manifests of the base cluster, and waits until their workloads are ready.
func (l *Landscape) deploy(ctx context.Context, began time.Time) error {
	var c client.Client
	err := l.waitFor(ctx, "kube-apiserver", func() (err error) {
		if c, err = l.Client(); err != nil {
			return err
		}
		return c.Get(ctx, client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{})
	})
	if err != nil {
		return err
	}
	l.say("  API server responds after %s", l.since(began))
	objects, err := l.objects()
	if err != nil {
		return err
	}
	manager := ssa.NewResourceManager(c, polling.NewStatusPoller(c, c.RESTMapper(), polling.Options{}), ssa.Owner{Field: string(fieldOwner)})
	err = l.waitFor(ctx, "kube-apiserver", func() error {
		_, err := manager.ApplyAllStaged(ctx, objects, ssa.DefaultApplyOptions())
		return err
	})
	if err != nil {
		return fmt.Errorf("applying the manifests of the base cluster: %w", err)
	}
	if err := l.waitFor(ctx, "kubelet", func() error { return nodeReady(ctx, c, Node) }); err != nil {
		return err
	}
	l.say("  node is ready after %s", l.since(began))
	return l.waitFor(ctx, "containerd", func() error {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, d); err != nil {
			return err
		}
		if d.Status.ReadyReplicas < 1 {
			return errors.New("no Pod of CoreDNS is ready")
		}
		return nil
	})
}

func nodeReady(ctx context.Context, c client.Client, name string) error {
	node := &corev1.Node{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("the node %s is not ready", name)
}

// objects returns the objects of all manifests.
func (l *Landscape) objects() ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	files, err := fs.Glob(manifests, "manifests/*.yaml")
	if err != nil {
		return nil, err
	}
	functions := template.FuncMap{"image": l.reference}
	for _, file := range files {
		content, err := manifests.ReadFile(file)
		if err != nil {
			return nil, err
		}
		parsed, err := template.New(file).Funcs(functions).Parse(string(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		var text bytes.Buffer
		if err := parsed.Execute(&text, l); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(&text, 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}
