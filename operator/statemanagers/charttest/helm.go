package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// renderingPause is the pause between two renderings, so that what is made of the time differs.
const renderingPause = 1100 * time.Millisecond

// historyMax is how many revisions are kept: the default of Helm's command line, and of the state manager.
const historyMax = 10

// reference is who puts a subject onto a cluster by the tools that people have.
type reference interface {
	// put installs a version, or upgrades to it.
	put(ctx context.Context, v *version) error
	// desired are the objects of the version that was put last, as they were rendered.
	desired(ctx context.Context) ([]*unstructured.Unstructured, error)
	// madeUp are the fields whose values differ each time that a version is rendered.
	madeUp(ctx context.Context, v *version) (madeUp, error)
	// remove takes everything away.
	remove(ctx context.Context) error
}

// helmReference is Helm's own library, used as its command line does.
type helmReference struct {
	cluster *cluster
	name    string
	timeout time.Duration
	// folder is for what Helm keeps about clusters.
	folder string
}

// actions is what one action works with.
func (h *helmReference) actions() (*action.Configuration, error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.WrapConfigFn = func(*rest.Config) *rest.Config { return rest.CopyConfig(h.cluster.config) }
	flags.Namespace, flags.CacheDir = &h.name, &h.folder
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	return config, config.Init(flags, h.name, "secrets")
}

// load loads the chart anew: Helm changes the one that it is given.
func (v *version) load() (*chart.Chart, error) { return loader.LoadArchive(bytes.NewReader(v.archive)) }

func (h *helmReference) put(ctx context.Context, v *version) error {
	c, err := v.load()
	if err != nil {
		return err
	}
	config, err := h.actions()
	if err != nil {
		return err
	}
	before, err := h.cluster.records(h.name, h.name)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		install := action.NewInstall(config)
		install.ReleaseName, install.Namespace, install.CreateNamespace = h.name, h.name, true
		install.WaitStrategy, install.Timeout = kube.HookOnlyStrategy, h.timeout
		_, err = install.RunWithContext(ctx, c, v.values)
		return err
	}
	upgrade := action.NewUpgrade(config)
	upgrade.Namespace, upgrade.ResetValues, upgrade.MaxHistory = h.name, true, historyMax
	upgrade.WaitStrategy, upgrade.Timeout = kube.HookOnlyStrategy, h.timeout
	_, err = upgrade.RunWithContext(ctx, h.name, c, v.values)
	return err
}

func (h *helmReference) desired(context.Context) ([]*unstructured.Unstructured, error) {
	all, err := h.cluster.records(h.name, h.name)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no record of release %s", h.name)
	}
	return parse(all[len(all)-1].Manifest)
}

// madeUp renders a version twice, as `helm template` does.
func (h *helmReference) madeUp(ctx context.Context, v *version) (madeUp, error) {
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(h.cluster.config, h.cluster.http)
	if err != nil {
		return nil, err
	}
	kinds, err := action.GetVersionSet(resources)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	var rendered [2][]*unstructured.Unstructured
	for i := range rendered {
		if i > 0 {
			if err := pause(ctx, renderingPause); err != nil {
				return nil, err
			}
		}
		c, err := v.load()
		if err != nil {
			return nil, err
		}
		config, err := h.actions()
		if err != nil {
			return nil, err
		}
		template := action.NewInstall(config)
		template.ReleaseName, template.Namespace, template.DryRunStrategy, template.APIVersions = h.name, h.name, action.DryRunClient, kinds
		made, err := template.RunWithContext(ctx, c, v.values)
		if err != nil {
			return nil, nil //nolint:nilerr // Installing it will fail too, and tell.
		}
		release := made.(*releasev1.Release)
		if rendered[i], err = parse(release.Manifest); err != nil {
			return nil, err
		}
		for _, hook := range release.Hooks {
			more, err := parse(hook.Manifest)
			if err != nil {
				return nil, err
			}
			rendered[i] = append(rendered[i], more...)
		}
	}
	return madeUpBetween(rendered[0], rendered[1]), nil
}

func (h *helmReference) remove(context.Context) error {
	before, err := h.cluster.records(h.name, h.name)
	if err != nil || len(before) == 0 {
		return err
	}
	config, err := h.actions()
	if err != nil {
		return err
	}
	uninstall := action.NewUninstall(config)
	uninstall.WaitStrategy, uninstall.Timeout = kube.HookOnlyStrategy, h.timeout
	_, err = uninstall.Run(h.name)
	return err
}
