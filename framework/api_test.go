package framework_test

import (
	"context"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// The names and signatures that users of the framework's predecessors know. This file does not compile when one is lost.
var (
	_ func() func() backoff.BackOff                                                               = framework.DefaultBackOffFactory
	_ func([]framework.Resource) func(context.Context, any) ([]framework.Resource, error)         = framework.DefaultResourceSetResourceFunc
	_ func(error) bool                                                                            = framework.IsExecutionFailed
	_ func(error) bool                                                                            = framework.IsInvalidConfig
	_ func(error) bool                                                                            = framework.IsNoResourceSet
	_ func(context.Context, any, []framework.Resource) error                                      = framework.ProcessUpdate
	_ func(context.Context, any, []framework.Resource) error                                      = framework.ProcessDelete
	_ func(framework.CRUDResourceConfig) (*framework.CRUDResource, error)                         = framework.NewCRUDResource
	_ func(framework.Config) (*framework.Framework, error)                                        = framework.New
	_ func(framework.ResourceRouterConfig) (*framework.ResourceRouter, error)                     = framework.NewResourceRouter
	_ func(framework.ResourceSetConfig) (*framework.ResourceSet, error)                           = framework.NewResourceSet
	_ func() *framework.Patch                                                                     = framework.NewPatch
	_ func(*framework.Patch, any)                                                                 = (*framework.Patch).SetCreateChange
	_ func(*framework.Patch, any)                                                                 = (*framework.Patch).SetUpdateChange
	_ func(*framework.Patch, any)                                                                 = (*framework.Patch).SetDeleteChange
	_ func(*framework.CRUDResource, context.Context, any) error                                   = (*framework.CRUDResource).EnsureCreated
	_ func(*framework.CRUDResource, context.Context, any) error                                   = (*framework.CRUDResource).EnsureDeleted
	_ func(*framework.Framework, any)                                                             = (*framework.Framework).DeleteFunc
	_ func(*framework.Framework, any, any)                                                        = (*framework.Framework).UpdateFunc
	_ func(*framework.Framework, context.Context, chan watch.Event, chan watch.Event, chan error) = (*framework.Framework).ProcessEvents
	_ func(*framework.Framework, context.Context) error                                           = (*framework.Framework).Boot
	_ func(*framework.ResourceRouter, any) (*framework.ResourceSet, error)                        = (*framework.ResourceRouter).ResourceSet
	_ func(*framework.ResourceSet, any) bool                                                      = (*framework.ResourceSet).Handles
	_ func(*framework.ResourceSet) []framework.Resource                                           = (*framework.ResourceSet).Resources
	_ framework.Resource                                                                          = (*framework.CRUDResource)(nil)
	_ framework.CRUDResourceOps                                                                   = (*anyOps)(nil)
	_                                                                                             = framework.PrometheusNamespace + framework.PrometheusSubsystem
	_ interface {
		Watch(context.Context) (chan watch.Event, chan watch.Event, chan error)
	} = informer.Interface(nil)
	_ = framework.Config{
		CRD: (*apiextensionsv1.CustomResourceDefinition)(nil), CRDClient: nil, Informer: nil, Logger: nil, ResourceRouter: nil, BackOffFactory: nil,
	}
	_ = framework.CRUDResourceConfig{Logger: micrologger.Logger(nil), Ops: framework.CRUDResourceOps(nil)}
	_ = framework.ResourceSetConfig{Handles: nil, InitCtx: nil, Logger: nil, Resources: nil}
)
