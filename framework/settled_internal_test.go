package framework

import "context"

// settledOps find everything in order.
type settledOps struct{ name string }

func (o settledOps) Name() string                                                { return o.name }
func (settledOps) GetCurrentState(context.Context, any) (any, error)             { return nil, nil }
func (settledOps) GetDesiredState(context.Context, any) (any, error)             { return nil, nil }
func (settledOps) ApplyCreateChange(context.Context, any, any) error             { return nil }
func (settledOps) ApplyUpdateChange(context.Context, any, any) error             { return nil }
func (settledOps) ApplyDeleteChange(context.Context, any, any) error             { return nil }
func (settledOps) NewUpdatePatch(context.Context, any, any, any) (*Patch, error) { return nil, nil }
func (settledOps) NewDeletePatch(context.Context, any, any, any) (*Patch, error) { return nil, nil }
