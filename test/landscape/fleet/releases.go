package fleet

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/storage/driver"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/hack/chart/generate"
)

//go:embed manifests
var manifests embed.FS

// render renders one of the manifests with values.
func render(name string, values any) (string, error) {
	indent := func(by int, text string) string {
		return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+strings.Repeat(" ", by))
	}
	parsed, err := template.New(name).Funcs(template.FuncMap{"indent": indent}).ParseFS(manifests, "manifests/"+name)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	err = parsed.Execute(&text, values)
	return text.String(), err
}

// apply applies the objects of one of the manifests.
func (f *Fleet) apply(ctx context.Context, to client.Client, name string, values any) error {
	text, err := render(name, values)
	if err != nil {
		return err
	}
	objects, err := parse(name, text)
	if err != nil {
		return err
	}
	return applyObjects(ctx, to, objects)
}

// image returns the repository and the tag of an image of the landscape.
func (f *Fleet) image(name string) (repository, tag string, err error) {
	reference, err := f.landscape.Image(name)
	if err != nil {
		return "", "", err
	}
	at := strings.LastIndex(reference, ":")
	return reference[:at], reference[at+1:], nil
}

// install installs or upgrades a release of a chart of the repository.
func (f *Fleet) install(ctx context.Context, release, chartName, namespace, values string) error {
	chart, err := generate.LoadFrom(filepath.Join(f.landscape.Root, "charts", chartName))
	if err != nil {
		return err
	}
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &content); err != nil {
		return fmt.Errorf("read the values of the chart %s: %w", chartName, err)
	}
	config, err := f.landscape.Helm(namespace)
	if err != nil {
		return err
	}
	if exists, err := installed(config, release); err != nil {
		return err
	} else if exists {
		upgrade := action.NewUpgrade(config)
		upgrade.Namespace, upgrade.WaitStrategy, upgrade.Timeout = namespace, kube.HookOnlyStrategy, timeout
		upgrade.ForceConflicts = true // landscape-push owns the images that it has changed
		_, err := upgrade.RunWithContext(ctx, release, chart, content)
		return err
	}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.WaitStrategy, install.Timeout = release, namespace, kube.HookOnlyStrategy, timeout
	install.TakeOwnership = true
	_, err = install.RunWithContext(ctx, chart, content)
	return err
}

// installed reports whether a release exists.
func installed(config *action.Configuration, release string) (bool, error) {
	_, err := action.NewHistory(config).Run(release)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return false, nil
	}
	return err == nil, err
}

// rolledOut waits until a Deployment is rolled out.
func (f *Fleet) rolledOut(ctx context.Context, namespace, name string) error {
	return wait(ctx, func() error {
		d := &appsv1.Deployment{}
		if err := f.base.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
			return err
		}
		s := d.Status
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.AvailableReplicas != *d.Spec.Replicas {
			return fmt.Errorf("the Deployment %s/%s has %d of %d replicas available", namespace, name, s.AvailableReplicas, *d.Spec.Replicas)
		}
		return nil
	})
}
