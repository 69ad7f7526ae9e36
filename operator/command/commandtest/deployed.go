package commandtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// Manifests returns what "manifests" prints, but for custom resource definitions and what the Prometheus Operator knows. args are more flags.
func Manifests(ctx context.Context, config command.Config, args ...string) ([]client.Object, error) {
	config.KeepGlobalLoggers = true
	cmd, err := command.New(config)
	if err != nil {
		return nil, err
	}
	var printed bytes.Buffer
	log := &tail{}
	cmd.SetOut(&printed)
	cmd.SetErr(log)
	cmd.SetArgs(append([]string{"manifests"}, args...))
	if err := cmd.ExecuteContext(ctx); err != nil {
		return nil, fmt.Errorf("%w; the log of %s ends with:\n%s", err, config.Name, log)
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	var objects []client.Object
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(&printed)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifests of %s: %w", config.Name, err)
		}
		decoded, _, err := decoder.Decode(document, nil, nil)
		switch object, ok := decoded.(client.Object); {
		case runtime.IsNotRegisteredError(err):
		case err != nil:
			return nil, fmt.Errorf("read the manifests of %s: %w", config.Name, err)
		case ok:
			objects = append(objects, object)
		}
	}
}

// deployed is the operator as its manifests have it in a namespace of a run: there it looks at its definitions, elects a leader, and looks at
// this one namespace.
func deployed(config command.Config, args []string) *operatortest.Deployed {
	manifests := func(ctx context.Context, namespace string) ([]client.Object, error) {
		return Manifests(ctx, config, append([]string{"--namespace", namespace, "--into", namespace, "--crds", string(operator.CheckCRDs)}, args...)...)
	}
	return &operatortest.Deployed{
		Objects: manifests,
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			objects, err := manifests(ctx, namespace)
			if err != nil {
				return err
			}
			for _, o := range objects {
				if d, ok := o.(*appsv1.Deployment); ok {
					args := slices.DeleteFunc(d.Spec.Template.Spec.Containers[0].Args[1:], func(arg string) bool {
						return strings.HasPrefix(arg, "--namespace=") // Start gives it.
					})
					// A Pod has its namespace, and addresses of its own.
					args = append(args, "--leader-election-namespace", namespace, "--listen-address", "127.0.0.1:0")
					return Start(config, args...)(ctx, cfg, namespace)
				}
			}
			return fmt.Errorf("there is no Deployment among the manifests of %s", config.Name)
		},
	}
}
