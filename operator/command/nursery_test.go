package command_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/guards"
	"github.com/operatorkit/operatorkit/operator/inspector/graph"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

const plotCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: plots.command.test.operatorkit.io
spec:
  group: command.test.operatorkit.io
  scope: Namespaced
  names:
    plural: plots
    singular: plot
    kind: Plot
    listKind: PlotList
    shortNames: [pt]
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            default: {}
            properties:
              plant: {type: string, default: grass}
              size: {type: integer, default: 3, minimum: 1}
`

func kindOf(kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "command.test.operatorkit.io", Version: "v1", Kind: kind})
	return obj
}

// nursery is an operator with two frameworks: one makes signs for Plots, the other does to ConfigMaps with the label "bed"
// what it can't tell. With the variable NURSERY it has faults, or tries a next version.
func nursery() command.Config {
	return command.Config{
		Name:              "nursery",
		Version:           "v2",
		CRDFiles:          fstest.MapFS{"plots.yaml": {Data: []byte(plotCRD)}},
		KeepGlobalLoggers: true,
		ReadGuards:        guards.Read,
		New: func(_ context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
			kind := "Plot"
			if os.Getenv("NURSERY") == "unknown kind" {
				kind = "Orchard"
			}
			plots, err := deps.NewSource(kindOf(kind))
			if err != nil {
				return nil, err
			}
			router, err := newSigns(deps)
			if err != nil {
				return nil, err
			}
			bed, err := labels.NewRequirement("bed", "exists", nil)
			if err != nil {
				return nil, err
			}
			beds, err := informer.NewKubernetes(informer.KubernetesConfig{Client: deps.Client, Object: &corev1.ConfigMap{}, Name: "configmaps",
				Namespaces: deps.Namespaces, LabelSelector: labels.NewSelector().Add(*bed), Logger: deps.Logger})
			if err != nil {
				return nil, err
			}
			first, err := deps.NewFramework(framework.Config{Name: "signs", Source: plots, ResourceRouter: router})
			if err != nil {
				return nil, err
			}
			deps.Inspector.Draw(first, drawPlot)
			second, err := deps.NewFramework(framework.Config{Name: "beds", Source: beds, Resources: []framework.Resource{&greeter{deps, "hello"}}})
			return []*framework.Framework{first, second}, err
		},
	}
}

// drawPlot draws what grows on a Plot, and who works there. On one with weeds there is nothing to draw.
func drawPlot(_ context.Context, obj any) ([]*graph.Graph, error) {
	plot := obj.(*unstructured.Unstructured)
	plant, _, _ := unstructured.NestedString(plot.Object, "spec", "plant")
	switch plant {
	case "weeds":
		return nil, nil
	case "stones":
		return nil, errors.New("nothing grows here")
	}
	return []*graph.Graph{
		{Name: "plants", Title: "Plants of " + plot.GetName(), Nodes: []graph.Node{
			{ID: "soil", Label: "soil", State: graph.Progressing},
			{ID: plant, Label: plant, Versions: []string{"seed", "sprout"}, State: graph.Waiting, DependsOn: []string{"soil"}, WaitsFor: []string{"soil"}},
		}},
		{Name: "people", Title: "People", Nodes: []graph.Node{{ID: "gardener", Label: "gardener", State: graph.Ready}}},
	}, nil
}

// newSigns makes a ConfigMap for each Plot that says what grows there. The next version, which is only tried if the
// variable NURSERY says so, praises large ones. With "labels", it does so for those with the label "sign". With "immutable", signs are
// replaced.
func newSigns(deps *operator.Dependencies) (*framework.ResourceRouter, error) {
	config := framework.ResourceRouterConfig{Logger: deps.Logger}
	var replace []client.Object
	if os.Getenv("NURSERY") == "immutable" {
		replace = []client.Object{&corev1.ConfigMap{}}
	}
	for _, version := range []string{"", "v2"} {
		if version == "v2" && os.Getenv("NURSERY") != "shadow" {
			continue
		}
		signs, err := objectresource.New(objectresource.Config[*unstructured.Unstructured]{
			Name: "signs", Client: deps.Client, Logger: deps.Logger, Kinds: []client.Object{&corev1.ConfigMap{}}, Replace: replace,
			Desired: func(ctx context.Context, plot *unstructured.Unstructured) ([]client.Object, error) {
				return sign(ctx, deps, version, plot)
			},
		})
		if err != nil {
			return nil, err
		}
		handles := framework.HandlesType[any]
		if os.Getenv("NURSERY") == "labels" {
			handles = framework.HandlesLabel("sign", "yes")
		}
		set, err := framework.NewResourceSet(framework.ResourceSetConfig{
			Name: version, Shadow: version == "v2", Handles: handles, Resources: []framework.Resource{signs},
		})
		if err != nil {
			return nil, err
		}
		config.ResourceSets = append(config.ResourceSets, set)
	}
	return framework.NewResourceRouter(config)
}

func sign(ctx context.Context, deps *operator.Dependencies, version string, plot *unstructured.Unstructured) ([]client.Object, error) {
	plant, _, _ := unstructured.NestedString(plot.Object, "spec", "plant")
	size, _, _ := unstructured.NestedInt64(plot.Object, "spec", "size")
	text := fmt.Sprintf("%d of %s", size, plant)
	if version == "v2" && size > 100 {
		text += "!"
	}
	switch os.Getenv("NURSERY") {
	case "fails":
		return nil, errors.New("no wood for signs")
	case "none":
		return nil, nil
	case "writes":
		return nil, deps.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: plot.GetNamespace(), Name: "early"}})
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: plot.GetName() + "-sign"}, Data: map[string]string{"text": text}}
	if os.Getenv("NURSERY") == "immutable" {
		made.Immutable = new(true)
	}
	return []client.Object{made}, nil
}
