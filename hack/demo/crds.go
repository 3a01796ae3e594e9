package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	fieldManager = "trellis-demo"
	crdTimeout   = 30 * time.Second
)

// installCRDs applies the CustomResourceDefinitions of a directory and waits until they are served.
func installCRDs(ctx context.Context, config *rest.Config, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return fmt.Errorf("finding CRDs: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no CRD in %s: run `make generate`", dir)
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("installing CRDs: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("installing CRDs: %w", err)
	}
	for _, file := range files {
		if err := installCRD(ctx, c, file); err != nil {
			return fmt.Errorf("installing the CRD %s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

func installCRD(ctx context.Context, c client.Client, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(content, &object.Object); err != nil {
		return err
	}
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership)
	if err != nil {
		return err
	}

	notEstablished := errors.New("not Established")
	err = wait.PollUntilContextTimeout(ctx, pollInterval, crdTimeout, true, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: object.GetName()}, crd); err != nil {
			return false, err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return errors.Join(notEstablished, err)
	}
	return nil
}
