package notfound

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Checked returns a client like c that distinguishes a doubtful 404 from one that counts. A client
// that is already checked is returned unchanged, and so is nil. It is as safe for concurrent use as
// c.
func Checked(c client.Client) client.Client {
	switch known := c.(type) {
	case nil, checked, checkedWithWatch:
		return c
	case client.WithWatch:
		return CheckedWithWatch(known)
	}
	return checked{c}
}

// CheckedWithWatch is Checked for a client that can watch.
func CheckedWithWatch(c client.WithWatch) client.WithWatch {
	switch c.(type) {
	case nil, checkedWithWatch:
		return c
	}
	return checkedWithWatch{checked{c}, c}
}

type checked struct{ client.Client }

// check checks the answer to a request for an object or a list.
func (c checked) check(obj runtime.Object, key client.ObjectKey, err error) error {
	if err == nil {
		return nil
	}
	gvk, kindErr := c.GroupVersionKindFor(obj)
	if kindErr != nil {
		return err
	}
	a := asked{kind: gvk, key: key}
	if o, ok := obj.(client.Object); ok {
		a.uid = o.GetUID()
	} else {
		a.kind = kindOf(gvk)
	}
	return a.check(c.RESTMapper(), err)
}

func (c checked) checkObject(obj client.Object, err error) error {
	return c.check(obj, client.ObjectKeyFromObject(obj), err)
}

// Get implements client.Reader. Only the key identifies the object, not the content of obj.
func (c checked) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.check(obj, key, c.Client.Get(ctx, key, obj, opts...))
}

// List implements client.Reader.
func (c checked) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.check(list, client.ObjectKey{}, c.Client.List(ctx, list, opts...))
}

// IsObjectNamespaced implements client.Client.
func (c checked) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	namespaced, err := c.Client.IsObjectNamespaced(obj)
	return namespaced, c.check(obj, client.ObjectKey{}, err)
}

// Delete implements client.Writer.
func (c checked) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.checkObject(obj, c.Client.Delete(ctx, obj, opts...))
}

// DeleteAllOf implements client.Writer.
func (c checked) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return c.check(obj, client.ObjectKey{}, c.Client.DeleteAllOf(ctx, obj, opts...))
}

// Update implements client.Writer.
func (c checked) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.checkObject(obj, c.Client.Update(ctx, obj, opts...))
}

// Patch implements client.Writer.
func (c checked) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.checkObject(obj, c.Client.Patch(ctx, obj, patch, opts...))
}

// Status implements client.StatusClient.
func (c checked) Status() client.SubResourceWriter {
	return checkedStatus{c.Client.Status(), c}
}

// checkedWithWatch has the methods of checked, and Watch.
type checkedWithWatch struct {
	checked

	watching client.WithWatch
}

// Watch implements client.WithWatch.
func (c checkedWithWatch) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	return c.watching.Watch(ctx, list, opts...)
}

type checkedStatus struct {
	client.SubResourceWriter

	client checked
}

// Update implements client.SubResourceWriter.
func (s checkedStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.client.checkObject(obj, s.SubResourceWriter.Update(ctx, obj, opts...))
}

// Patch implements client.SubResourceWriter.
func (s checkedStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.client.checkObject(obj, s.SubResourceWriter.Patch(ctx, obj, patch, opts...))
}
